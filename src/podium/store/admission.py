"""What the API server fills in, and refuses, when a pod is created.

Where a pod was in a cluster before (it has a uid), what was filled in there stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podium.api.meta import Raw
from podium.api.policy import POLICY_ANNOTATION, PriorityClass
from podium.api.suggestion import suggestion
from podium.store.default_tolerations import with_defaults, with_kept_defaults
from podium.store.errors import StoreError, forbidden
from podium.store.label_keys import merge_label_keys
from podium.store.priority_classes import SYSTEM_CLASSES, default_class
from podium.store.resources import POD

_DEFAULTS: Raw = {"terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler"}
_PREEMPT = "PreemptLowerPriority"


def admit_pod(raw: Raw, key: str, classes: Mapping[str, PriorityClass]) -> Raw:
    """The pod with all that is missing filled in: priority, policy, grace period, tolerations, selectors and phase.

    `classes` are the cluster's PriorityClasses by name. A policy that an annotation of the class names becomes an
    annotation of the pod, which keeps it whatever becomes of the class. Raises StoreError 403 for a class that does not
    exist, and for a priority or policy other than its class's. Upstream also refuses a priority without a class; here
    it stands.
    """
    spec: Raw = {**_DEFAULTS, **raw.get("spec", {})}
    metadata = raw["metadata"]
    if not metadata.get("uid"):
        spec = with_defaults(merge_label_keys(spec, metadata.get("labels", {})))
    if not metadata.get("uid") or "priority" not in spec:
        metadata = _annotated(metadata, spec, key, classes)
        spec = {**spec, **_priority(spec, key, classes)}
    return {**raw, "metadata": metadata, "spec": spec, "status": {"phase": "Pending", **raw.get("status", {})}}


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
        hint = suggestion(name, sorted({*classes, *SYSTEM_CLASSES}))
        raise forbidden(POD, key, f"no PriorityClass with name {name} was found; {hint}")
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
