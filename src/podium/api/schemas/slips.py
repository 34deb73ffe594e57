"""Warnings about valid but implausible values: 0.4 of a byte of memory, 500 whole cores, an unknown preemption policy.

kube-apiserver also warns about fractions of bytes (pkg/api/pod/warnings.go); the other rules are Podium's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from podium.api.errors import field_path, shown
from podium.api.meta import Kubernetes
from podium.api.pod import Pod, PodSpec, Quantity
from podium.api.policy import POLICY_ANNOTATION, PREEMPTION_POLICIES, PriorityClass
from podium.api.quantity import CPU, is_bytes, milli_value
from podium.api.schemas.suggestion import likely
from podium.api.workloads import PodTemplate

_POLICY_PREFIX, _, _POLICY_NAME = POLICY_ANNOTATION.rpartition("/")
_LEAST_BYTES = 1 << 20
_MOST_CORES = 200
_MILLI = 1_000


def slips(object_: Kubernetes) -> Iterator[tuple[str, str]]:
    """Yield the implausible values in a pod or a workload's template: each path, and the probable intention."""
    if isinstance(object_, Pod):
        yield from _in_pod(object_.spec, ".spec")
    if isinstance(object_, Pod | PriorityClass):
        yield from _in_annotations(object_.metadata.annotations, ".metadata.annotations")
    template = getattr(getattr(object_, "spec", None), "template", None)
    if isinstance(template, PodTemplate):
        yield from _in_pod(template.spec, ".spec.template.spec")
        yield from _in_annotations(template.metadata.annotations, ".spec.template.metadata.annotations")


def _in_annotations(annotations: Mapping[str, str], path: str) -> Iterator[tuple[str, str]]:
    """Yield a preemption policy that does not exist, and annotations that probably are meant to hold one."""
    for key, value in annotations.items():
        prefix, _, name = key.rpartition("/")
        if key == POLICY_ANNOTATION:
            if value not in PREEMPTION_POLICIES:
                meant = " or ".join(likely(value, PREEMPTION_POLICIES) or PREEMPTION_POLICIES)
                yield field_path(path, key), f"{shown(value)} is no preemption policy and has no effect; write {meant}"
        elif prefix == _POLICY_PREFIX and likely(name, [_POLICY_NAME]):
            yield field_path(path, key), f"is no annotation that Podium reads; did you mean {POLICY_ANNOTATION}?"


def _in_pod(spec: PodSpec, path: str) -> Iterator[tuple[str, str]]:
    lists = (("containers", spec.containers), ("initContainers", spec.init_containers))
    places = [
        (f"{path}.{field}[{index}].resources", one.resources) for field, all_ in lists for index, one in enumerate(all_)
    ]
    for place, resources in (*places, (f"{path}.resources", spec.resources)):
        if resources is not None:
            for part, amounts in (("requests", resources.requests), ("limits", resources.limits)):
                problems = ((name, _slip(name, amount)) for name, amount in amounts.items())
                yield from ((field_path(f"{place}.{part}", name), problem) for name, problem in problems if problem)


@lru_cache(maxsize=65_536)
def _slip(name: str, amount: Quantity) -> str:
    """Return the probably intended amount, or ""."""
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
