"""What was found out about the places of a group's pods: a value."""

from __future__ import annotations

from dataclasses import dataclass

from podium.cluster.pods import PodRecord
from podium.decide.placement import Placement
from podium.framework.status import SUCCESS, Status

WAITING = "waiting for minCount pods from a gang to be scheduled"
UNSCHEDULABLE = "pod group is unschedulable"


@dataclass(frozen=True, slots=True)
class MemberPlacement:
    """Where one pod would go; ``node_name`` "" is nowhere, and ``reserved`` then may say which plugin would not.

    ``placement`` is what its attempt found, beside the members before it.
    """

    pod: PodRecord
    placement: Placement
    node_name: str = ""
    reserved: Status = SUCCESS

    @property
    def fits(self) -> bool:
        """Whether it gets a node."""
        return bool(self.node_name)


@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """Where the members of a group would go together, in the order in which they are tried.

    ``needed`` of them have to fit, or none goes anywhere. ``domain`` is the topology domain that was taken, or the
    first that was tried where none will do; of ``domains`` there are so many, 0 without a topology. ``node_count`` are
    the nodes that there were to choose from, ``rejected_by`` the plugins that turned some member down in some domain.
    ``problem`` says why nothing could be tried, "" where something was. ``is_arranged``: they fit in another way than
    one after the other where each would rather be; ``is_cut``: for such a way not all could be tried.
    """

    members: tuple[MemberPlacement, ...]
    needed: int
    node_count: int
    rejected_by: tuple[str, ...] = ()
    domain: str = ""
    domains: int = 0
    cursor: int = 0
    problem: str = ""
    is_arranged: bool = False
    is_cut: bool = False

    @property
    def fitting(self) -> int:
        """How many members get a node."""
        return sum(member.fits for member in self.members)

    @property
    def is_enough(self) -> bool:
        """Whether the members that fit may go."""
        return not self.problem and self.fitting >= max(self.needed, 1)

    @property
    def message(self) -> str:
        """Why the group does not go, as its condition says it."""
        if self.problem:
            return self.problem
        if self.domains:
            return f"0/{self.domains} placements are available, first placement status: {UNSCHEDULABLE}"
        return UNSCHEDULABLE
