"""A gang that wants room: pods of one PodGroup of which so many start together, or none does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podium.api.policy import NEVER_PREEMPTS
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.eligibility import NOT_ELIGIBLE_TERMINATING

EVERYWHERE: tuple[tuple[str, Int64s | None], ...] = (("", None),)
"""Members may be on any nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Gang:
    """The members of a group that have no node yet, in the order in which they are tried.

    ``needed``: so many of these have to find a place, or none does. ``priority`` is that of the group: victims have a
    lower one. ``domains`` are the rows (ascending) of each topology domain in one of which all members have to be, by
    its name; without a topology it is one entry, named "", whose rows are None for all. ``running`` are the members
    (uids) that have nodes.
    """

    key: str
    members: tuple[PodRecord, ...]
    needed: int
    priority: int
    domains: tuple[tuple[str, Int64s | None], ...] = EVERYWHERE
    running: frozenset[str] = frozenset()

    @property
    def own(self) -> frozenset[str]:
        """The members (uids), whom none of them takes room from though it were more important."""
        return self.running.union(member.uid for member in self.members)

    def __post_init__(self) -> None:
        if not 0 < self.needed <= len(self.members):
            raise ValueError(f"gang {self.key} needs {self.needed} of {len(self.members)} members")


def gang_priority(members: Iterable[PodRecord], stated: int | None = None) -> int:
    """The priority that counts for a gang: its group's, where that states one, or else its most important member's.

    It is then no less than 0.

    Source: pkg/scheduler/framework/preemption/types.go (newPodGroupPreemptor), which took the highest of the pods' and
    0 before groups had a priority.
    """
    return max((0, *(member.priority for member in members))) if stated is None else stated


def gang_ineligible_reason(cluster: Cluster, gang: Gang) -> str:
    """Why a gang may not preempt now; "" where it may.

    None does where one of its members never preempts, or while less important pods that were preempted still terminate
    on nodes that members are nominated to, or those whom members wait for.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go (preemptorEligibleToPreemptOthers).
    """
    for member in gang.members:
        if member.preemption_policy in NEVER_PREEMPTS:
            return f"not eligible due to preemptionPolicy={member.preemption_policy}."
    return NOT_ELIGIBLE_TERMINATING if _awaits_victims(cluster, gang) else ""


def _awaits_victims(cluster: Cluster, gang: Gang) -> bool:
    row_of = cluster.nodes.row_of
    for member in gang.members:
        awaited = [cluster.placed.get(uid) for uid in cluster.nominations.victims_of(member.uid)]
        if any(victim is not None and victim.terminating for victim in awaited):
            return True
        row = row_of.get(member.nominated_node_name)
        if row is not None and any(
            other.terminating and other.preempted and other.priority < gang.priority for other in cluster.pods_on(row)
        ):
            return True
    return False
