"""Pods that are scheduled together or not at all: PodGroup (scheduling.k8s.io/v1alpha2), and how pods name theirs.

The older form (scheduling.x-k8s.io/v1alpha1, of kubernetes-sigs/scheduler-plugins) is read into the same thing:
`podium.api.pod_group_forms` says how. What it has and the other has not stands in annotations of Podium's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from podium.api.meta import Int32, Int64, Kubernetes, Narrow
from podium.api.pod import PodSpec

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""Of a pod that belongs to a group in the older form; its value is the name of a PodGroup in the pod's namespace."""

TIMEOUT_ANNOTATION = "podium.dev/schedule-timeout-seconds"
"""Of a PodGroup: how long its pods wait for one another on their way to their nodes (`scheduleTimeoutSeconds`)."""

TOPOLOGY_ANNOTATION = "podium.dev/topology-key"
"""Of a PodGroup in the older form, which has no field for it: the label of the domain that its pods are to share."""

DISRUPTION_ANNOTATION = "podium.dev/disruption-mode"
"""Of a PodGroup in the older form: its `disruptionMode`."""

SCHEDULED = "PodGroupScheduled"
"""The condition that says whether a group was scheduled."""

DISRUPTION_MODES = ("Pod", "PodGroup")

HIGHEST_PRIORITY = 1_000_000_000
"""The highest priority of a group: that of classes which are not the system's (HighestUserDefinablePriority)."""

_SECOND_NS = 10**9


class BasicSchedulingPolicy(Narrow, frozen=True, kw_only=True):
    """The pods are scheduled as others are."""


class GangSchedulingPolicy(Narrow, frozen=True, kw_only=True):
    """No pod is scheduled unless ``min_count`` are."""

    min_count: Int32 = 0


class PodGroupSchedulingPolicy(Narrow, frozen=True, kw_only=True):
    """How the pods are scheduled; one of the two is given."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Narrow, frozen=True, kw_only=True):
    """All pods are to be on nodes with the same value of a label."""

    key: str = ""


class PodGroupSchedulingConstraints(Narrow, frozen=True, kw_only=True):
    """Where the pods may be together; of topologies at most one is given."""

    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupSpec(Narrow, frozen=True, kw_only=True):
    """What is wanted of a group. ``disruption_mode`` "" counts as Pod; ``priority`` None is that of its pods."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: Literal["", "Pod", "PodGroup"] = ""
    priority_class_name: str = ""
    priority: Int32 | None = None


class Condition(Narrow, frozen=True, kw_only=True):
    """What was observed of a group (meta/v1 Condition)."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_transition_time: str | None = None


class PodGroupStatus(Narrow, frozen=True, kw_only=True):
    """What was observed of a group."""

    conditions: tuple[Condition, ...] = ()

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type, or None."""
        return next((condition for condition in self.conditions if condition.type == type_), None)


class PodGroup(Kubernetes, frozen=True, kw_only=True):
    """Pods that belong together (scheduling.k8s.io/v1alpha2)."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def is_gang(self) -> bool:
        """Whether its pods are scheduled all or none."""
        return self.spec.scheduling_policy.gang is not None

    @property
    def min_count(self) -> int:
        """How many pods have to be placed together; 1 for a group that is no gang (getMinCount of GangScheduling)."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else max(gang.min_count, 1)

    @property
    def topology_key(self) -> str:
        """The label of the domain that all its pods are to share; "" where they may be anywhere."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else ""

    @property
    def is_one_victim(self) -> bool:
        """Whether its pods are disrupted together or not at all."""
        return self.spec.disruption_mode == "PodGroup"

    @property
    def schedule_timeout_ns(self) -> int | None:
        """How long its pods wait for one another; None where it does not say."""
        text = self.metadata.annotations.get(TIMEOUT_ANNOTATION, "")
        return int(text) * _SECOND_NS if text.isascii() and text.isdigit() and len(text) < 10 and int(text) else None


def group_of_pod(namespace: str, labels: Mapping[str, str], spec: PodSpec) -> str:
    """The key of the PodGroup that a pod names, in its field or by the label of the older form; "" for none."""
    named = spec.scheduling_group
    name = labels.get(GROUP_LABEL, "") if named is None else named.pod_group_name
    return f"{namespace}/{name}" if name else ""
