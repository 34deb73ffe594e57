"""The quality-of-service class of a pod: who loses out first when a node runs short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from podium.api.pod import Container, PodSpec, Quantity
from podium.api.quantity import milli_value
from podium.api.resource_requests import pod_level_requests, requests_of
from podium.api.resources import CPU, MEMORY

QOSClass = Literal["Guaranteed", "Burstable", "BestEffort"]


def qos_class(spec: PodSpec) -> QOSClass:
    """The class of a pod, by cpu and memory alone (ComputePodQOS in pkg/apis/core/v1/helper/qos).

    Guaranteed: every container, init containers too, has requests equal to its limits, and not zero.
    BestEffort: no container requests or limits anything. Burstable: all else. Resources of the pod as a
    whole, where it has them, decide alone.
    """
    if spec.resources is not None:
        return _class_of(pod_level_requests(spec), _milli(spec.resources.limits))
    classes = {_container_class(container) for container in (*spec.init_containers, *spec.containers)}
    return _one_of(classes) if classes else "BestEffort"


def _container_class(container: Container) -> QOSClass:
    return _class_of(_milli(requests_of(container.resources)), _milli(container.resources.limits))


def _class_of(requests: Mapping[str, int], limits: Mapping[str, int]) -> QOSClass:
    """The class that one set of requests and limits (in milli) makes."""
    classes: set[QOSClass] = set()
    for name in (CPU, MEMORY):
        limit = limits.get(name, 0)
        if requests.get(name, 0) != limit:
            return "Burstable"
        classes.add("Guaranteed" if limit else "BestEffort")
    return _one_of(classes)


def _one_of(classes: set[QOSClass]) -> QOSClass:
    """The class that all have; those of different classes make a Burstable whole."""
    return next(iter(classes)) if len(classes) == 1 else "Burstable"


def _milli(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: milli_value(amount) for name, amount in amounts.items()}
