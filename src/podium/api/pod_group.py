"""PodGroups (scheduling.k8s.io/v1alpha2), whose pods are scheduled together or not at all, and references to them.

The older form (scheduling.x-k8s.io/v1alpha1, of kubernetes-sigs/scheduler-plugins, apis/scheduling/v1alpha1/types.go)
has `minMember` and `scheduleTimeoutSeconds`. It is read into the same type, and written again for its clients. Fields
that only one form has are kept in annotations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from podium.api.meta import APIStruct, Int32, Int64, Kubernetes, Raw, object_at, value_at
from podium.api.pod import PodCondition, PodSpec

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""The label of pods in a group of the older form; its value is the name of a PodGroup in the pod's namespace."""

TIMEOUT_ANNOTATION = "podium.dev/schedule-timeout-seconds"
"""The annotation of a PodGroup: how long its pods wait for each other before binding (`scheduleTimeoutSeconds`)."""

TOPOLOGY_ANNOTATION = "podium.dev/topology-key"
"""The annotation of a PodGroup of the older form: the topology label of the domain that its pods must share."""

DISRUPTION_ANNOTATION = "podium.dev/disruption-mode"
"""The annotation of a PodGroup of the older form: its `disruptionMode`."""

GROUP_PROTECTION = "scheduling.k8s.io/podgroup-protection"
"""The finalizer that keeps a deleted PodGroup while pods that have not ended refer to it."""

SCHEDULED = "PodGroupScheduled"
"""The condition that says whether a group was scheduled."""

DISRUPTION_MODES = ("Pod", "PodGroup")

_SECOND_NS = 10**9


class BasicSchedulingPolicy(APIStruct, frozen=True, kw_only=True):
    """A policy that schedules the pods individually."""


class GangSchedulingPolicy(APIStruct, frozen=True, kw_only=True):
    """A policy that schedules no pod unless ``min_count`` can be scheduled."""

    min_count: Int32 = 0


class PodGroupSchedulingPolicy(APIStruct, frozen=True, kw_only=True):
    """The scheduling policy of the pods; exactly one of the two is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(APIStruct, frozen=True, kw_only=True):
    """A constraint that places all pods on nodes with the same value of a label."""

    key: str = ""


class PodGroupSchedulingConstraints(APIStruct, frozen=True, kw_only=True):
    """The placement constraints of the group; at most one topology."""

    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupSpec(APIStruct, frozen=True, kw_only=True):
    """The desired state of a group. ``disruption_mode`` "" counts as Pod; ``priority`` None is that of its pods."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: Literal["", "Pod", "PodGroup"] = ""
    priority_class_name: str = ""
    priority: Int32 | None = None


class Condition(PodCondition, frozen=True, kw_only=True):
    """An observed condition of a group (meta/v1 Condition)."""

    observed_generation: Int64 = 0
    last_transition_time: str | None = None


class PodGroupStatus(APIStruct, frozen=True, kw_only=True):
    """The observed state of a group."""

    conditions: tuple[Condition, ...] = ()

    def condition(self, type_: str) -> Condition | None:
        return next((condition for condition in self.conditions if condition.type == type_), None)


class PodGroup(Kubernetes, frozen=True, kw_only=True):
    """A group of pods (scheduling.k8s.io/v1alpha2)."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def is_gang(self) -> bool:
        """Return whether its pods are scheduled all or none."""
        return self.spec.scheduling_policy.gang is not None

    @property
    def min_count(self) -> int:
        """The number of pods that must be placed together.

        1 for a group that is not a gang (getMinCount of GangScheduling).
        """
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else max(gang.min_count, 1)

    @property
    def topology_key(self) -> str:
        """The label of the domain that all its pods must share; "" for no constraint."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else ""

    @property
    def is_one_victim(self) -> bool:
        """Return whether its pods are disrupted together or not at all."""
        return self.spec.disruption_mode == "PodGroup"

    @property
    def schedule_timeout_ns(self) -> int | None:
        """The timeout for its pods to wait for each other, in nanoseconds; None if unset."""
        text = self.metadata.annotations.get(TIMEOUT_ANNOTATION, "")
        return int(text) * _SECOND_NS if text.isascii() and text.isdigit() and len(text) < 10 and int(text) else None


def group_of_pod(namespace: str, labels: Mapping[str, str], spec: PodSpec) -> str:
    """Return the key of the PodGroup that a pod names, in its field or by the older form's label; "" for none."""
    named = spec.scheduling_group
    name = labels.get(GROUP_LABEL, "") if named is None else named.pod_group_name
    return f"{namespace}/{name}" if name else ""


OLDER_VERSION = "scheduling.x-k8s.io/v1alpha1"

_ANNOTATION = "metadata.annotations[{}]"
_OLDER_PLACES = {
    "schedulingPolicy": "spec.minMember",
    "schedulingConstraints": _ANNOTATION.format(TOPOLOGY_ANNOTATION),
    "disruptionMode": _ANNOTATION.format(DISRUPTION_ANNOTATION),
}
_PLACE = re.compile(rf"\bspec\.({'|'.join(_OLDER_PLACES)})\b(?:\.\w+|\[\d+\])*")


def to_older_form(raw: Raw) -> Raw:
    """Return a PodGroup of Kubernetes in the form of scheduler-plugins."""
    spec = object_at(raw, "spec")
    annotations = dict(object_at(raw, "metadata", "annotations"))
    older: Raw = {}
    gang = object_at(spec, "schedulingPolicy", "gang")
    if "minCount" in gang:
        older["minMember"] = gang["minCount"]
    timeout = annotations.pop(TIMEOUT_ANNOTATION, "")
    if isinstance(timeout, str) and timeout.isascii() and timeout.isdigit():
        older["scheduleTimeoutSeconds"] = int(timeout)
    topology = value_at(spec, "schedulingConstraints", "topology")
    if isinstance(topology, list) and topology:
        annotations[TOPOLOGY_ANNOTATION] = object_at(topology[0]).get("key", "")
    if spec.get("disruptionMode"):
        annotations[DISRUPTION_ANNOTATION] = spec["disruptionMode"]
    return _with(raw, OLDER_VERSION, older, annotations)


def from_older_form(raw: Raw) -> Raw:
    """Return a PodGroup of scheduler-plugins in the form of Kubernetes."""
    spec = object_at(raw, "spec")
    annotations = dict(object_at(raw, "metadata", "annotations"))
    newer: Raw = {"schedulingPolicy": {"gang": {"minCount": spec.get("minMember", 1)}}}
    timeout = spec.get("scheduleTimeoutSeconds")
    if timeout is not None:
        annotations[TIMEOUT_ANNOTATION] = str(timeout)
    key = annotations.pop(TOPOLOGY_ANNOTATION, "")
    if key:
        newer["schedulingConstraints"] = {"topology": [{"key": key}]}
    mode = annotations.pop(DISRUPTION_ANNOTATION, "")
    if mode:
        newer["disruptionMode"] = mode
    return _with(raw, "scheduling.k8s.io/v1alpha2", newer, annotations)


def in_older_words(text: str) -> str:
    """Return a path or message with the field names of the older form."""
    return _PLACE.sub(lambda found: _OLDER_PLACES[found[1]], text)


def _with(raw: Raw, api_version: str, spec: Raw, annotations: Raw) -> Raw:
    metadata = object_at(raw, "metadata")
    if annotations:
        metadata = {**metadata, "annotations": annotations}
    else:
        metadata = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**raw, "apiVersion": api_version, "metadata": metadata, "spec": spec}
