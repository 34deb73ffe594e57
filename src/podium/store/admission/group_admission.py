"""What the API server fills in, and refuses, when a PodGroup is created: the priority of the class that it names.

Source: plugin/pkg/admission/priority, with the feature gate WorkloadAwarePreemption.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.meta import Raw
from podium.api.pod_group import HIGHEST_PRIORITY
from podium.api.policy import PriorityClass
from podium.store.admission.priority_classes import priority_of, unknown_class
from podium.store.api_resources import POD_GROUP
from podium.store.errors import forbidden, invalid


def admit_group(raw: Raw, key: str, classes: Mapping[str, PriorityClass]) -> Raw:
    """The group with its priority filled in, where it names one of the cluster's `classes`.

    One that was in a cluster before (it has a uid) keeps the priority that it got there. Raises StoreError 403 for a
    class that does not exist, and for a priority other than its class's, and 422 for a class of the system's, whose
    priority no group may have. A group that names no class is as important as its pods, and may state a priority of its
    own; upstream it gets the default class's, or 0, and no other.
    """
    spec = raw.get("spec") or {}
    name, given = spec.get("priorityClassName", ""), spec.get("priority")
    if not name or (given is not None and raw["metadata"].get("uid")):
        return raw
    priority = priority_of(name, classes)
    if priority is None:
        raise unknown_class(POD_GROUP, key, name, classes)
    if given not in (None, priority):
        raise forbidden(
            POD_GROUP, key, f"priority {given} is not that of PriorityClass {name}, {priority}; leave it out"
        )
    if priority > HIGHEST_PRIORITY:
        problem = f"must be less than or equal to {HIGHEST_PRIORITY}, and {name} has {priority}"
        raise invalid(POD_GROUP, key, problem, "spec.priority")
    return {**raw, "spec": {**spec, "priority": priority}}


def readmit_group(raw: Raw, previous: Raw) -> Raw:
    """The group of an update with the priority that admission filled in before, where the update leaves it out."""
    given, before = raw.get("spec"), previous["spec"]
    if not isinstance(given, dict) or "priority" in given or "priority" not in before:
        return raw
    if given.get("priorityClassName") != before.get("priorityClassName"):
        return raw
    return {**raw, "spec": {**given, "priority": before["priority"]}}
