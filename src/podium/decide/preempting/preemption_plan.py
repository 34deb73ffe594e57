"""The results of preemption, for a pod that fits nowhere and for a gang: the chosen candidate, alternatives, and caps.

Caps limit how often schedulers may disrupt pods that have a budget. Candidates whose victims exceed a cap are held
back. If none is left, victims that do not count for these caps are looked for; otherwise preemption waits until the
caps allow it. Source: controlled-rescheduling.md, "Disruption budget" (a quota for the components that consume it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from podium.api.disruption_policy import POLICY_NAME, CapBucket
from podium.api.times import SECOND, format_time
from podium.cluster.arrays import Bools, Int64s, Lists
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.criteria import CostColumn
from podium.decide.preempting.eligibility import BudgetBlock, VictimFilter, both_allow, budgeted
from podium.decide.preempting.reprieve import TrialTable
from podium.framework.verdicts import Code, Status, unschedulable


class CapDelay(Struct, frozen=True):
    """The reason why preemption waits: the fewest ``victims`` with a budget, and the rest of a cap.

    ``next_ns`` is when it allows them.
    """

    bucket: CapBucket
    victims: int
    rate: str
    left: int
    next_ns: int

    @property
    def next_time(self) -> str:
        """The time when the cap allows the victims, rounded up to seconds."""
        return format_time(-(-self.next_ns // SECOND) * SECOND)

    @property
    def cap(self) -> str:
        """The remaining disruptions of the cap, in words."""
        return f"the cap of {self.rate} on {self.bucket} (DisruptionPolicy {POLICY_NAME}) leaves {self.left}"

    def to_dict(self) -> dict[str, Any]:
        found = {"victims": self.victims, "cap": self.rate, "left": self.left, "next": self.next_time}
        return {**found, "namespace": self.bucket.namespace} if self.bucket.namespace else found

    def __str__(self) -> str:
        pods = "a pod" if self.victims == 1 else f"{self.victims} pods"
        return f"it would disrupt {pods} with a budget, and {self.cap}; the next try is at {self.next_time}"


class CappedTable(Struct, frozen=True):
    """Trials whose candidates the caps allow. ``held`` are the rows held back, with the cap that does.

    ``put_off`` is None if some candidate is left, or there was none.
    """

    table: TrialTable
    held: Mapping[int, CapDelay] = {}
    put_off: CapDelay | None = None

    def held_back(self, names: Sequence[str]) -> dict[str, Status]:
        """Return why each node held back is no candidate, by its name."""
        return {
            names[row]: unschedulable(f"{wait.victims} of the victims have a budget, and {wait.cap}")
            for row, wait in self.held.items()
        }


def is_capped(cluster: Cluster) -> bool:
    """Return whether some candidates may exceed a cap."""
    return cluster.caps.limits and bool(cluster.caps.used())


def within_cap(cluster: Cluster, table: TrialTable) -> CappedTable:
    """Return the trials with only those candidates that exceed no cap.

    If none is left, ``put_off`` is of the candidate that is allowed first; of several, the one with the fewest victims.
    """
    if not is_capped(cluster):
        return CappedTable(table)
    candidates = table.candidates
    held = _delays(cluster, table.victim_lists(candidates))
    if not held:
        return CappedTable(table)
    allowed = np.ones(len(candidates), dtype=np.bool_)
    allowed[list(held)] = False
    put_off = None
    if not allowed.any():
        put_off = held[min(held, key=lambda position: (held[position].next_ns, held[position].victims, position))]
    by_row = {int(table.rows[candidates[position]]): held[position] for position in sorted(held)}
    return CappedTable(table.only(candidates[allowed]), by_row, put_off)


def capped_trials(
    cluster: Cluster, table: TrialTable, trials: Callable[[VictimFilter], TrialTable], may_disrupt: VictimFilter | None
) -> CappedTable:
    """Return the trials of ``table`` within the caps.

    If victims with a budget would have to wait, ``trials`` tries others, which are taken if they suffice.
    """
    capped = within_cap(cluster, table)
    if capped.put_off is not None:
        others = trials(without_budgets(cluster, may_disrupt))
        if len(others.candidates):
            return CappedTable(others)
    return capped


def put_off_for(cluster: Cluster, victims: Sequence[PodRecord]) -> CapDelay | None:
    """Return the cap that delays the disruption of some pods longest; None for none."""
    slots = np.array([victim.slot for victim in victims], dtype=np.int64)
    return _delays(cluster, Lists(np.array([0, len(slots)], dtype=np.int64), slots)).get(0)


def _delays(cluster: Cluster, victims: Lists) -> dict[int, CapDelay]:
    """Return the caps that delay the disruption of lists of pods (slots) longest, without lists that none delays."""
    held: dict[int, CapDelay] = {}
    for bucket, counted in _counted(cluster, victims.entries):
        numbers = victims.sums(counted)
        needed = np.minimum(numbers, cluster.caps.rate(bucket).count)
        for position in np.flatnonzero(needed > cluster.caps.tokens_left(bucket)).tolist():
            wait = put_off_by(cluster, bucket, int(numbers[position]))
            if position not in held or wait.next_ns > held[position].next_ns:
                held[position] = wait
    return held


def put_off_by(cluster: Cluster, bucket: CapBucket, victims: int) -> CapDelay:
    """Return the delay of a disruption of more pods with a budget than a cap leaves."""
    caps = cluster.caps
    return CapDelay(bucket, victims, str(caps.rate(bucket)), caps.tokens_left(bucket), caps.next_ns(bucket, victims))


def without_budgets(cluster: Cluster, may_disrupt: VictimFilter | None) -> VictimFilter:
    """Extend a filter: pods that count for a cap that is partly used are no victims."""

    def allowed(_pod: PodRecord, slots: Int64s) -> Bools:
        free = np.ones(len(slots), dtype=np.bool_)
        for _, counted in _counted(cluster, slots):
            free &= ~counted
        return free

    return both_allow(may_disrupt, allowed)


def _counted(cluster: Cluster, slots: Int64s) -> Iterator[tuple[CapBucket, Bools]]:
    """Yield each partly used bucket, and ``[slots]``: the pods whose disruption counts for it."""
    counted, classes = budgeted(cluster, slots), cluster.pods.pod_class[slots]
    by_namespace: dict[str, list[int]] = {}
    for class_id in np.unique(classes[counted]).tolist():
        by_namespace.setdefault(cluster.classes[class_id].namespace, []).append(class_id)
    for bucket in cluster.caps.used():
        if not bucket.namespace:
            yield bucket, counted
        elif bucket.namespace in by_namespace:
            yield bucket, counted & np.isin(classes, by_namespace[bucket.namespace])


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

    __ne__ = object.__ne__

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
