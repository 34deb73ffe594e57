"""The results of preemption, for a pod that fits nowhere and for a gang: the chosen candidate, and alternatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import msgspec
from msgspec.structs import replace

from podium.cluster.pods import PodRecord
from podium.decide.cap import CapDelay
from podium.decide.preempting.criteria import CostColumn
from podium.decide.preempting.eligibility import BudgetBlock
from podium.framework.verdicts import Code, Status


class SearchEffort(msgspec.Struct, frozen=True):
    """The effort of a search: ``steps`` of at most ``most_steps``, and the nodes or domains ``left_out`` because of it.

    ``is_complete``: no choice is cheaper than the one that was found, by the criteria.
    """

    steps: int
    most_steps: int
    left_out: int
    is_complete: bool


class PreemptionCandidate(msgspec.Struct, frozen=True):
    """A node with its victims (most important first), and how many of them violate a budget.

    With settings that allow it, victims may be on other nodes (see `podium.decide.preempting.wide`). For the chosen
    candidate ``reasons`` then says, by uid, why victims have to go if not for their room. ``cost`` holds the values of
    the criteria, smaller is better.
    """

    node_name: str
    victims: tuple[PodRecord, ...]
    budget_violations: int
    cost: tuple[int, ...]
    reasons: Mapping[str, str] = {}

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


class Plan(msgspec.Struct, frozen=True):
    """The part of a plan that is the same for a pod and for a gang.

    ``reason`` says why it is not eligible, ``message`` why there is no candidate. ``criterion`` is the last that
    separated the chosen candidate from others, "" for none. ``put_off``: preemption would work, but has to wait for a
    cap. ``criteria`` are those of a stated cost, () for kube-scheduler's. ``search`` is set if victims on several nodes
    were searched. ``held_back``: budgets, which are required, alone leave no candidate.
    """

    eligible: bool
    reason: str = ""
    message: str = ""
    criterion: str = ""
    put_off: CapDelay | None = None
    criteria: tuple[CostColumn, ...] = ()
    search: SearchEffort | None = None
    held_back: BudgetBlock | None = None

    def held_back_by(self, held: BudgetBlock) -> Self:
        """Return the same plan, without a candidate, if budgets are the reason for that."""
        return replace(self, held_back=held, message=f"{self.message}; {held}")


class PreemptionPlan(Plan, frozen=True):
    """The result of preemption for a pod; ``chosen`` is None if no candidate was found.

    ``choice`` says what it was chosen from. With details, ``selected`` names all nodes that the criteria leave tied,
    ``criterion`` is filled in (with the number of victims if the sum of their priorities differs only because of it),
    and ``candidates`` and ``rejected`` hold the nodes that were tried, by name.

    ``is_exchange``: some victims have the preemptor's own priority. ``error`` is the failure of a filter or extender,
    if there is no candidate. ``keeps_nomination``: extenders left no candidate, which ends no nomination.
    """

    chosen: PreemptionCandidate | None = None
    selected: tuple[str, ...] = ()
    candidates: Mapping[str, PreemptionCandidate] = {}
    rejected: Mapping[str, Status] = {}
    is_exchange: bool = False
    error: str = ""
    keeps_nomination: bool = False
    choice: CandidateChoice = CandidateChoice()


def without_candidates(nodes: int, tally: Sequence[tuple[Status, int]]) -> PreemptionPlan:
    """Return the plan for a pod without a candidate: its message, and the errors of filters (NewAggregate).

    ``tally`` has each reason why nodes that were tried are no candidates, with the number of these.
    """
    texts = list(dict.fromkeys([status.message for status, _ in tally if status.code is Code.ERROR]))
    error = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""
    return PreemptionPlan(True, message=no_candidates_message(nodes, tally), error=error)


def no_candidates_message(nodes: int, tally: Sequence[tuple[Status, int]]) -> str:
    """Return kube-scheduler's message for a preemption without candidates: each reason with its number of nodes."""
    reasons: dict[str, int] = {}
    rest = nodes
    for status, number in tally:
        rest -= number
        for reason in dict.fromkeys(status.reasons):
            reasons[reason] = reasons.get(reason, 0) + number
    counts = [f"{number} {reason}" for reason, number in reasons.items()]
    if rest > 0:
        counts.append(f"{rest} Preemption is not helpful for scheduling")
    return f"preemption: 0/{nodes} nodes are available: {', '.join(sorted(counts))}."


class GangCandidate(msgspec.Struct, frozen=True):
    """Nodes for members of a gang, in their order, once the victims (most important first) are gone.

    ``domain`` is that of the gang's topology key, "" without one. ``cost`` holds the values of the criteria, smaller is
    better; () without victims. ``depends_on`` names, by uid, the other victim (its key) that a victim requires nearby.
    """

    placements: tuple[tuple[PodRecord, str], ...]
    victims: tuple[PodRecord, ...] = ()
    budget_violations: int = 0
    domain: str = ""
    cost: tuple[int, ...] = ()
    depends_on: Mapping[str, str] = {}

    @property
    def victims_by_node(self) -> Mapping[str, tuple[PodRecord, ...]]:
        """The victims on each node, by its name."""
        names = sorted({victim.node_name for victim in self.victims})
        return {name: tuple(victim for victim in self.victims if victim.node_name == name) for name in names}


class GangPlan(Plan, frozen=True):
    """The result of preemption for a gang; ``chosen`` is None if no candidate was found.

    ``alternatives`` are other candidates, the cheapest first, at most one for each domain.
    """

    chosen: GangCandidate | None = None
    alternatives: tuple[GangCandidate, ...] = ()
