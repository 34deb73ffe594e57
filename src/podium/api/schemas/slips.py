"""Requests that are right, and hardly meant so: 0.4 of a byte of memory, 500 whole cores.

kube-apiserver warns of fractions of bytes too (pkg/api/pod/warnings.go); the other thresholds are of our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from podium.api.errors import field_path, shown
from podium.api.meta import Kubernetes
from podium.api.pod import Pod, PodSpec, Quantity
from podium.api.quantity import milli_value
from podium.api.resources import CPU, is_bytes
from podium.api.workloads import PodTemplate

_LEAST_BYTES = 1 << 20
_MOST_CORES = 200
_MILLI = 1_000


def slips(object_: Kubernetes) -> Iterator[tuple[str, str]]:
    """The amounts in a pod, or in a workload's template, that look like slips: each its path and what it may be."""
    if isinstance(object_, Pod):
        yield from _in_pod(object_.spec, ".spec")
    template = getattr(getattr(object_, "spec", None), "template", None)
    if isinstance(template, PodTemplate):
        yield from _in_pod(template.spec, ".spec.template.spec")


def _in_pod(spec: PodSpec, path: str) -> Iterator[tuple[str, str]]:
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            place = f"{path}.{field}[{index}].resources"
            yield from _in_amounts(container.resources.requests, f"{place}.requests")
            yield from _in_amounts(container.resources.limits, f"{place}.limits")
    if spec.resources is not None:
        yield from _in_amounts(spec.resources.requests, f"{path}.resources.requests")
        yield from _in_amounts(spec.resources.limits, f"{path}.resources.limits")


def _in_amounts(amounts: Mapping[str, Quantity], path: str) -> Iterator[tuple[str, str]]:
    for name, amount in amounts.items():
        problem = _slip(name, amount)
        if problem:
            yield field_path(path, name), problem


@lru_cache(maxsize=65_536)
def _slip(name: str, amount: Quantity) -> str:
    """What the amount may be instead, or ""."""
    try:
        milli = milli_value(amount)
    except ValueError:
        return ""
    digits = str(amount).removesuffix("m")
    if is_bytes(name) and milli % _MILLI:
        return f"{shown(amount)} is no whole number of bytes; did you mean {digits}Mi?"
    if not digits.isdecimal():
        return ""
    if is_bytes(name) and 0 < milli < _LEAST_BYTES * _MILLI:
        return f"{shown(amount)} is {milli // _MILLI} bytes; did you mean {milli // _MILLI}Mi?"
    if name == CPU and str(amount) == digits and milli >= _MOST_CORES * _MILLI:
        return f"{shown(amount)} is {milli // _MILLI} whole cores; did you mean {digits}m?"
    return ""
