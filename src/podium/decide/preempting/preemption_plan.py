"""The result of preemption for a pod that fits nowhere: the chosen candidate, and its alternatives."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podium.cluster.pods import PodRecord
from podium.decide.cap import CapDelay
from podium.decide.preempting.criteria import CostColumn
from podium.decide.preempting.eligibility import HeldBack
from podium.framework.verdicts import Status


class SearchEffort(msgspec.Struct, frozen=True):
    """The effort of a search: ``steps`` of at most ``most_steps``, and the nodes or domains ``left_out`` because of it.

    ``is_complete``: no choice is cheaper than the one that was found, by the criteria.
    """

    steps: int
    most_steps: int
    left_out: int
    is_complete: bool


class PreemptionCandidate(msgspec.Struct, frozen=True, eq=False):
    """A node with its victims (most important first), and how many of them violate a budget.

    With settings that allow it, victims may be on other nodes (see `podium.decide.preempting.wide`). For the chosen
    candidate ``reasons`` then says, by uid, why victims have to go if not for their room. ``cost`` holds the values of
    the criteria, smaller is better; it is filled in if candidates were compared in detail, and does not count for
    equality.
    """

    node_name: str
    victims: tuple[PodRecord, ...]
    budget_violations: int
    cost: tuple[int, ...] = ()
    reasons: Mapping[str, str] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PreemptionCandidate) and self._compared == other._compared

    def __hash__(self) -> int:
        return hash((self.node_name, self.victims))

    @property
    def _compared(self) -> tuple[object, ...]:
        return self.node_name, self.victims, self.budget_violations, self.reasons

    @property
    def elsewhere(self) -> tuple[PodRecord, ...]:
        """The victims on other nodes."""
        return tuple(victim for victim in self.victims if victim.node_name != self.node_name)


class CandidateChoice(msgspec.Struct, frozen=True):
    """The number of ``candidates``, and the first nodes that cost the same as the chosen one, including it.

    It is known of every plan, with or without details. ``criterion`` is the last that made a difference, "" if it was
    not looked for.
    """

    candidates: int = 0
    equals: tuple[str, ...] = ()
    criterion: str = ""


class PreemptionPlan(msgspec.Struct, frozen=True):
    """The result of preemption.

    ``reason`` says why the pod is not eligible. ``chosen`` is None if no candidate was found. ``choice`` says what it
    was chosen from.

    With details, ``selected`` names all nodes that the criteria leave tied, ``criterion`` the last of `CRITERIA` that
    made a difference ("" with a single candidate, or none; the number of victims if the sum of their priorities
    differs only because of it), and ``candidates`` and ``rejected`` hold the nodes that were tried, by name.

    ``is_exchange``: some victims have the preemptor's own priority. ``put_off``: preemption would work, but has to wait
    for a cap. ``error`` is the failure of a filter or extender, if there is no candidate. ``keeps_nomination``:
    extenders left no candidate, which ends no nomination. ``criteria`` are those of a stated cost, () for
    kube-scheduler's. ``search`` is set if victims on other nodes were searched. ``held_back``: budgets, which are
    required, alone leave no candidate.
    """

    eligible: bool
    reason: str = ""
    chosen: PreemptionCandidate | None = None
    selected: tuple[str, ...] = ()
    criterion: str = ""
    candidates: Mapping[str, PreemptionCandidate] = {}
    rejected: Mapping[str, Status] = {}
    message: str = ""
    is_exchange: bool = False
    put_off: CapDelay | None = None
    error: str = ""
    keeps_nomination: bool = False
    criteria: tuple[CostColumn, ...] = ()
    search: SearchEffort | None = None
    choice: CandidateChoice = CandidateChoice()
    held_back: HeldBack | None = None
