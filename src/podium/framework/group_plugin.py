"""What a plugin may propose for a PodGroup of which too few pods fit.

Source: pkg/scheduler/framework/interface.go (PodGroupPostFilterPlugin).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.framework.cycle_state import CycleState
from podium.framework.handle import Handle
from podium.framework.plugin import Plugin, ReservePlugin
from podium.framework.pre_filters import PreFiltered
from podium.framework.status import Status
from podium.framework.verdicts import Outcome


@dataclass(frozen=True, slots=True)
class GroupDemand:
    """Pods of one PodGroup that are to be placed together, and do not fit together as things are.

    ``members`` are the pending ones in the order in which they are tried; of these at least ``needed`` have to get a
    place, beside those of the group that have one already. ``domains`` are the rows (ascending) of each topology domain
    that may take them, all in one, by the domain's name and in the order in which domains are tried; without a topology
    it is one entry, named "", whose rows are None for all.
    """

    key: str
    members: tuple[PodRecord, ...]
    needed: int
    domains: tuple[tuple[str, Int64s | None], ...] = (("", None),)


@dataclass(frozen=True, slots=True)
class GroupPostFilterResult:
    """What is proposed for a group: a node for each of enough members, and the pods that have to go for that, or none.

    ``placements`` are in the order of the members; those that are left out stay pending. A plugin answers SUCCESS when
    it found a way out, UNSCHEDULABLE when there is none or it is not worth it now, ERROR when it cannot tell.
    ``domain`` is where the members come together, "" without a topology. ``plan``, ``retry_ns`` and ``evicts`` are as
    in `PostFilterResult`. ``keeps_nominations``: the victims of an earlier plan are still going, so that the members'
    nominations stand; otherwise those end where there is no new plan. ``binds_first``: the members are to be bound as
    soon as the victims' deletions are under way. ``states`` are those of the placements, where these are bound now
    though there is no room yet: their kubelets hold them until there is.
    """

    status: Status
    placements: tuple[tuple[PodRecord, str], ...] = ()
    victims: tuple[PodRecord, ...] = ()
    domain: str = ""
    plan: Any = None
    retry_ns: int | None = None
    evicts: bool = False
    keeps_nominations: bool = False
    binds_first: bool = False
    states: tuple[CycleState, ...] = ()


class GroupHandle(Handle, Protocol):
    """What such a plugin may ask of the scheduler beside what any PostFilter may."""

    @property
    def reserving(self) -> Sequence[ReservePlugin]:
        """The plugins that reserve what a pod needs on its node beside room."""
        ...

    def pre_filter(self, state: CycleState, pod: PodRecord) -> PreFiltered:
        """What the PreFilters say of a member; they prepare the Filters in its state."""
        ...

    def filter(self, state: CycleState, pod: PodRecord, rows: Int64s | None = None) -> Outcome:
        """The Filters' answer for the live cluster, or some rows of it, with regard to nominated pods."""
        ...


@runtime_checkable
class GroupPostFilterPlugin(Plugin, Protocol):
    """Looks for a way out when too few of a PodGroup's pods fit: one plan for all of them, or nothing.

    It is a PostFilter plugin as well, and is asked in the order of these.
    """

    def group_post_filter(
        self, demand: GroupDemand, handle: GroupHandle, cluster: Cluster
    ) -> GroupPostFilterResult: ...
