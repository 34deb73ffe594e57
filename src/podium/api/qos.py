"""The QoS class of a pod, which determines the order of evictions under node pressure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from podium.api.pod import Container, PodSpec, Quantity
from podium.api.quantity import CPU, MEMORY, milli_value
from podium.api.resource_requests import computed_once, pod_level_requests, requests_of

QOSClass = Literal["Guaranteed", "Burstable", "BestEffort"]

_KNOWN: dict[int, tuple[PodSpec, QOSClass]] = {}


def qos_class(spec: PodSpec) -> QOSClass:
    """Return the class of a pod, by cpu and memory alone (ComputePodQOS in pkg/apis/core/v1/helper/qos).

    Guaranteed: every container, including init containers, has nonzero requests equal to its limits. BestEffort: no
    container has requests or limits. Burstable: all others. Pod-level resources, if set, decide alone.
    """
    return computed_once(_KNOWN, spec, lambda: _qos_class(spec))


def _qos_class(spec: PodSpec) -> QOSClass:
    if spec.resources is not None:
        return _class_of(pod_level_requests(spec), _milli(spec.resources.limits))
    classes = {_container_class(container) for container in (*spec.init_containers, *spec.containers)}
    return _one_of(classes) if classes else "BestEffort"


def _container_class(container: Container) -> QOSClass:
    return _class_of(_milli(requests_of(container.resources)), _milli(container.resources.limits))


def _class_of(requests: Mapping[str, int], limits: Mapping[str, int]) -> QOSClass:
    """Return the class for one set of requests and limits, in milli."""
    classes: set[QOSClass] = set()
    for name in (CPU, MEMORY):
        limit = limits.get(name, 0)
        if requests.get(name, 0) != limit:
            return "Burstable"
        classes.add("Guaranteed" if limit else "BestEffort")
    return _one_of(classes)


def _one_of(classes: set[QOSClass]) -> QOSClass:
    """Return the common class; a mix of classes is Burstable."""
    return next(iter(classes)) if len(classes) == 1 else "Burstable"


def _milli(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: milli_value(amount) for name, amount in amounts.items()}
