"""What the API server fills in, and refuses, when a pod is created.

Where a pod was in a cluster before (it has a uid), what was filled in there stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from podium.api.limit_range import LimitRange
from podium.api.meta import Raw
from podium.api.pod import PodSpec
from podium.api.policy import POLICY_ANNOTATION, PriorityClass
from podium.api.runtime_class import RuntimeClass
from podium.api.schemas.schema import defaults_of
from podium.store.admission.default_tolerations import with_defaults, with_kept_defaults
from podium.store.admission.label_keys import merge_label_keys
from podium.store.admission.limit_ranges import check_pod_limits, with_default_resources
from podium.store.admission.priority_classes import SYSTEM_CLASSES, default_class, unknown_class
from podium.store.admission.runtime_classes import with_runtime
from podium.store.api_resources import POD
from podium.store.errors import StoreError, forbidden

_DEFAULTS: Raw = dict(defaults_of("PodSpec"))
_PREEMPT = "PreemptLowerPriority"


def admit_pod(
    raw: Raw,
    key: str,
    classes: Mapping[str, PriorityClass],
    limit_ranges: Sequence[LimitRange] = (),
    runtime_classes: Mapping[str, RuntimeClass] = MappingProxyType({}),
) -> Raw:
    """The pod with all that is missing filled in: resources, priority, policy, grace period, tolerations and so on.

    `classes` are the cluster's PriorityClasses by name, `runtime_classes` its RuntimeClasses, and `limit_ranges` those
    of the pod's namespace. A policy that an annotation of the class names becomes an annotation of the pod, which keeps
    it whatever becomes of the class. Raises StoreError 403 for a class that does not exist, for a priority or policy
    other than its class's, and for resources that a limit range does not allow. Upstream also refuses a priority or
    an overhead without a class; here they stand.
    """
    raw = {**raw, "spec": {**_DEFAULTS, **raw.get("spec", {})}}
    is_new = not raw["metadata"].get("uid")
    if is_new:
        raw = _new(raw, key, limit_ranges, runtime_classes)
    metadata, spec = raw["metadata"], raw["spec"]
    if is_new or "priority" not in spec:
        metadata = _annotated(metadata, spec, key, classes)
        spec = {**spec, **_priority(spec, key, classes)}
    return {**raw, "metadata": metadata, "spec": spec, "status": {"phase": "Pending", **raw.get("status", {})}}


def _new(raw: Raw, key: str, limit_ranges: Sequence[LimitRange], runtime_classes: Mapping[str, RuntimeClass]) -> Raw:
    """A pod that was in no cluster yet, with what follows from itself, its namespace and its runtime class.

    One that is on a node has its resources, and is what its class made of it.
    """
    is_placed = bool(raw["spec"].get("nodeName"))
    if limit_ranges and not is_placed:
        raw = with_default_resources(raw, limit_ranges)
        check_pod_limits(POD, key, msgspec.convert(raw["spec"], PodSpec), limit_ranges)
    spec = with_defaults(merge_label_keys(raw["spec"], raw["metadata"].get("labels", {})))
    return {**raw, "spec": spec if is_placed else with_runtime(POD, key, spec, runtime_classes)}


def readmit_pod(raw: Raw, previous: Raw) -> Raw:
    """The pod of an update with what admission filled in before, where the update leaves it out."""
    given = raw.get("spec", {})
    if not isinstance(given, dict):
        return raw
    spec: Raw = {**_DEFAULTS, **given}
    for field in ("priority", "preemptionPolicy"):
        if field in previous["spec"]:
            spec.setdefault(field, previous["spec"][field])
    return {**raw, "spec": with_kept_defaults(spec, previous["spec"])}


def _priority(spec: Raw, key: str, classes: Mapping[str, PriorityClass]) -> Raw:
    """The fields that follow from the pod's class (plugin/pkg/admission/priority)."""
    name = spec.get("priorityClassName", "")
    if not name and "priority" in spec:
        return {"preemptionPolicy": spec.get("preemptionPolicy", _PREEMPT)}
    filled = _of_class(name, classes) if name else _of_default(classes.values())
    if filled is None:
        raise unknown_class(POD, key, name, classes)
    for field in ("priority", "preemptionPolicy"):
        if name and field in spec and spec[field] != filled[field]:
            raise _differs(key, field, spec[field], name, filled[field])
    return filled if name else {**filled, "preemptionPolicy": spec.get("preemptionPolicy", filled["preemptionPolicy"])}


def _annotated(metadata: Raw, spec: Raw, key: str, classes: Mapping[str, PriorityClass]) -> Raw:
    """The pod's metadata with the policy that the annotation of its class names, if there is one."""
    name = spec.get("priorityClassName", "")
    if not name and "priority" in spec:
        return metadata
    found = classes.get(name) if name else default_class(classes.values())
    policy = found.metadata.annotations.get(POLICY_ANNOTATION) if found is not None else None
    if policy is None:
        return metadata
    annotations = metadata.get("annotations", {})
    given = annotations.get(POLICY_ANNOTATION, policy)
    if name and given != policy:
        raise _differs(key, f"annotation {POLICY_ANNOTATION}", given, name, policy)
    return {**metadata, "annotations": {**annotations, POLICY_ANNOTATION: given}}


def _differs(key: str, field: str, given: object, name: str, right: object) -> StoreError:
    return forbidden(POD, key, f"{field} {given} is not that of PriorityClass {name}, {right}; leave it out")


def _of_class(name: str, classes: Mapping[str, PriorityClass]) -> Raw | None:
    found = classes.get(name)
    if found is not None:
        return {"priority": found.value, "preemptionPolicy": found.preemption_policy}
    if name in SYSTEM_CLASSES:
        return {"priority": SYSTEM_CLASSES[name], "preemptionPolicy": _PREEMPT}
    return None


def _of_default(classes: Iterable[PriorityClass]) -> Raw:
    """The default class's fields; without one, priority 0."""
    found = default_class(classes)
    if found is None:
        return {"priority": 0, "preemptionPolicy": _PREEMPT}
    return {
        "priorityClassName": found.metadata.name,
        "priority": found.value,
        "preemptionPolicy": found.preemption_policy,
    }
