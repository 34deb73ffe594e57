"""What a pod's RuntimeClass adds to it: overhead, node selector and tolerations (plugin/pkg/admission/runtimeclass)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from podium.api.meta import Raw
from podium.api.pod import ResourceList
from podium.api.quantity import milli_value
from podium.api.runtime_class import RuntimeClass, RuntimeScheduling
from podium.store.api_resource import APIResource
from podium.store.errors import forbidden


def with_runtime(resource: APIResource, key: str, spec: Raw, classes: Mapping[str, RuntimeClass]) -> Raw:
    """The spec of a new pod with what its class says; `spec` itself for a pod without one.

    Raises StoreError 403 for a class that does not exist, or that contradicts the pod.
    """
    name = spec.get("runtimeClassName")
    if not name:
        return spec
    found = classes.get(name)
    if found is None:
        raise forbidden(resource, key, f'pod rejected: RuntimeClass "{name}" not found')
    if found.overhead is not None:
        spec = {**spec, "overhead": _overhead(resource, key, spec.get("overhead"), found.overhead.pod_fixed)}
    return spec if found.scheduling is None else _scheduled(resource, key, spec, found.scheduling)


def merge_tolerations(first: Sequence[Raw], second: Sequence[Raw]) -> list[Raw]:
    """Both lists, without what another toleration among them covers (pkg/util/tolerations, MergeTolerations)."""
    every = [*first, *second]
    merged: list[Raw] = []
    for index, one in enumerate(every):
        later = (other for other in every[index + 1 :] if other != one)
        if not any(_covers(other, one) for other in (*merged, *later)):
            merged.append(one)
    return merged


def _overhead(resource: APIResource, key: str, given: ResourceList | None, fixed: ResourceList) -> ResourceList:
    if given is not None and _milli(given) != _milli(fixed):
        problem = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise forbidden(resource, key, problem)
    return fixed


def _scheduled(resource: APIResource, key: str, spec: Raw, scheduling: RuntimeScheduling) -> Raw:
    selector = dict(spec.get("nodeSelector", {}))
    for label, value in scheduling.node_selector.items():
        if selector.setdefault(label, value) != value:
            conflict = f"runtimeClass.scheduling.nodeSelector[{label}] = {value}"
            problem = f"conflict: {conflict}; pod.spec.nodeSelector[{label}] = {selector[label]}"
            raise forbidden(resource, key, problem)
    added: list[Raw] = msgspec.to_builtins(scheduling.tolerations)
    merged = {"nodeSelector": selector, "tolerations": merge_tolerations(spec.get("tolerations", ()), added)}
    return {**spec, **{name: value for name, value in merged.items() if value or name in spec}}


def _covers(one: Raw, other: Raw) -> bool:
    """Whether a toleration accepts all that the other accepts (isSuperset)."""
    if one == other:
        return True
    operator = one.get("operator") or "Equal"
    if other.get("key", "") != one.get("key", "") and (one.get("key") or operator != "Exists"):
        return False
    if one.get("effect") and other.get("effect") != one["effect"]:
        return False
    seconds, others = one.get("tolerationSeconds"), other.get("tolerationSeconds")
    if one.get("effect") == "NoExecute" and seconds is not None and (others is None or others > seconds):
        return False
    if operator == "Equal":
        return other.get("operator") == "Equal" and other.get("value", "") == one.get("value", "")
    return bool(operator == "Exists")


def _milli(amounts: ResourceList) -> dict[str, int]:
    return {name: milli_value(amount) for name, amount in amounts.items()}
