"""PodGroups, and pods that belong to one, in few words."""

from __future__ import annotations

from msgspec.structs import replace

from podium.api.meta import ObjectMeta
from podium.api.pod import Pod, PodSchedulingGroup
from podium.api.pod_group import (
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    TopologyConstraint,
)


def gang(
    name: str,
    min_count: int = 1,
    *,
    namespace: str = "default",
    whole: bool = False,
    priority: int | None = None,
    topology: str = "",
) -> PodGroup:
    """A gang; with ``whole`` its pods are disrupted together, with a ``topology`` key they share a domain."""
    together = PodGroupSchedulingConstraints(topology=(TopologyConstraint(key=topology),)) if topology else None
    return PodGroup(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodGroupSpec(
            scheduling_policy=PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=min_count)),
            scheduling_constraints=together,
            disruption_mode="PodGroup" if whole else "Pod",
            priority=priority,
        ),
    )


def of_gang(pod: Pod, name: str) -> Pod:
    """A pod of a group in its namespace."""
    return replace(pod, spec=replace(pod.spec, scheduling_group=PodSchedulingGroup(pod_group_name=name)))
