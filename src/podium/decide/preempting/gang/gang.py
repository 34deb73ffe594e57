"""A gang that wants room, pods of one PodGroup that start together or not at all, and its preemption plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from podium.api.policy import NEVER_PREEMPTS
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.cap import CapDelay
from podium.decide.preempting.criteria import CostColumn
from podium.decide.preempting.eligibility import NOT_ELIGIBLE_TERMINATING
from podium.decide.preempting.preemption_plan import HeldBack, SearchEffort

EVERYWHERE: tuple[tuple[str, Int64s | None], ...] = (("", None),)
"""Members may be on any nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Gang:
    """The members of a group that have no node yet, in the order in which they are tried.

    ``needed`` of them have to find a place, or none does. ``priority`` is that of the group: victims have a lower one.
    ``domains`` are the rows (ascending) of each topology domain, by its name; all members have to be in one of them.
    Without a topology it is one entry, named "", whose rows are None for all. ``running`` are the members (uids) that
    have nodes.
    """

    key: str
    members: tuple[PodRecord, ...]
    needed: int
    priority: int
    domains: tuple[tuple[str, Int64s | None], ...] = EVERYWHERE
    running: frozenset[str] = frozenset()

    @property
    def own(self) -> frozenset[str]:
        """The members (uids), which are no victims of one another."""
        return self.running.union(member.uid for member in self.members)

    def __post_init__(self) -> None:
        if not 0 < self.needed <= len(self.members):
            raise ValueError(f"gang {self.key} needs {self.needed} of {len(self.members)} members")


def gang_priority(members: Iterable[PodRecord], stated: int | None = None) -> int:
    """Return the priority of a gang: its group's if stated, otherwise its most important member's, and at least 0.

    Source: pkg/scheduler/framework/preemption/types.go (newPodGroupPreemptor), which took the highest of the pods' and
    0 before groups had a priority.
    """
    return max((0, *(member.priority for member in members))) if stated is None else stated


def gang_ineligible_reason(cluster: Cluster, gang: Gang) -> str:
    """Return why a gang may not preempt now; "" if it may.

    It may not if one of its members never preempts, or while less important preempted pods still terminate on nodes
    that members are nominated to, or victims of members do.

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
        if any(victim is not None and cluster.is_ending(victim) for victim in awaited):
            return True
        row = row_of.get(member.nominated_node_name)
        if row is not None and any(
            other.priority < gang.priority and cluster.is_ending_victim(other) for other in cluster.pods_on(row)
        ):
            return True
    return False


@dataclass(frozen=True, slots=True)
class GangCandidate:
    """Nodes for members, in their order, once the victims (most important first) are gone.

    ``domain`` is that of the gang's topology key, "" without one. ``cost`` holds the values of the criteria, smaller is
    better; () without victims. ``depends_on`` names, by uid, the other victim (its key) that a victim requires nearby.
    """

    placements: tuple[tuple[PodRecord, str], ...]
    victims: tuple[PodRecord, ...] = ()
    budget_violations: int = 0
    domain: str = ""
    cost: tuple[int, ...] = ()
    depends_on: Mapping[str, str] = field(default_factory=dict)

    @property
    def victims_by_node(self) -> Mapping[str, tuple[PodRecord, ...]]:
        """The victims on each node, by its name."""
        names = sorted({victim.node_name for victim in self.victims})
        return {name: tuple(victim for victim in self.victims if victim.node_name == name) for name in names}


@dataclass(frozen=True, slots=True)
class GangPlan:
    """The result of preemption for a gang.

    ``reason`` says why it is not eligible. ``chosen`` is None if no candidate was found, and ``message`` says so.
    ``alternatives`` are other candidates, the cheapest first, at most one for each domain; ``criterion`` is the last
    that separated the chosen one from some of them. ``put_off``: preemption would work, but has to wait for a cap.
    ``criteria`` are those of a stated cost, () for kube-scheduler's. ``held_back``: budgets, which are required, alone
    leave no candidate.
    """

    eligible: bool
    reason: str = ""
    chosen: GangCandidate | None = None
    alternatives: tuple[GangCandidate, ...] = ()
    criterion: str = ""
    message: str = ""
    put_off: CapDelay | None = None
    criteria: tuple[CostColumn, ...] = ()
    search: SearchEffort | None = field(default=None, compare=False)
    held_back: HeldBack | None = None


@dataclass(frozen=True, slots=True, eq=False)
class GangDomain:
    """The rows where members may go together, ``[rows]``: all of them, or those of one topology domain."""

    allowed: Bools
    name: str = ""


def gang_domains(cluster: Cluster, gang: Gang) -> list[GangDomain]:
    """Return the domains in which members may be, by name; the whole cluster if they may be anywhere."""
    found = []
    for name, rows in sorted(gang.domains, key=lambda domain: domain[0]):
        allowed = np.full(cluster.nodes.count, rows is None)
        if rows is not None:
            allowed[rows] = True
        found.append(GangDomain(allowed, name))
    return found
