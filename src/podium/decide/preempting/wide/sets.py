"""Sets of victims, many at once, and what the filters say of clusters without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s, in_order, occurring, pieces
from podium.cluster.pods import PodRecord
from podium.cluster.worlds import Worlds
from podium.decide.preempting.costs.criteria import CRITERIA
from podium.decide.preempting.costs.facts import Facts
from podium.decide.preempting.costs.victim_cost import UPSTREAM_COST, VictimCost
from podium.decide.preempting.costs.victim_sets import VictimSets
from podium.decide.preempting.trial_table import AFFINITY_KEPT, NEEDS_PROTECTED
from podium.decide.preempting.victims import with_budgets
from podium.decide.preempting.wide.potential import Pairs, Takeable
from podium.framework.cycle_state import CycleState
from podium.framework.handle import Handle
from podium.framework.reach import Reach
from podium.framework.verdicts import Decoders

_MOST_WORLDS = 4_096
_VIOLATIONS = CRITERIA["BudgetViolations"]


@dataclass(frozen=True, slots=True, eq=False)
class MemberSets:
    """Sets of members of a `Takeable`: ``members[starts[i]:starts[i + 1]]`` ascending, the most important first.

    ``allowed`` is ``[sets]``: false where a pod that may not be a victim would be one.
    """

    starts: Int64s
    members: Int64s
    allowed: Bools

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def none(cls) -> MemberSets:
        """No set at all."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(np.zeros(1, dtype=np.int64), nothing, np.empty(0, dtype=np.bool_))

    @property
    def owners(self) -> Int64s:
        """``[members]``: the set of each."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def only(self, positions: Int64s) -> MemberSets:
        """Some of the sets, in that order."""
        starts, places = pieces(self.starts, positions)
        return MemberSets(starts, self.members[places], self.allowed[positions])


def sets_of(owners: Int64s, members: Int64s, number: int) -> MemberSets:
    """So many sets, by owner; owners ascend, and so do the members of each."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=number))])
    return MemberSets(starts, members, np.ones(number, dtype=np.bool_))


class Asking:
    """Asks the filters whether a pod fits some rows without some sets of victims. Each answer about one is a step.

    Sets are compared by what they ``cost``, None as kube-scheduler compares them. ``kept`` are those whom the pod
    requires to be near, if that is a criterion: a set that leaves none of them around the row costs more than any that
    leaves one. The filters let such a pod in where it is the first of its group then. Where budgets are required
    (``requires_budgets``), the fewest violations come before everything else.
    """

    def __init__(
        self,
        runner: Handle,
        state: CycleState,
        pod: PodRecord,
        take: Takeable,
        kept: Sequence[Reach] | None = None,
        *,
        cost: VictimCost | None = None,
        requires_budgets: bool = False,
    ) -> None:
        self.cluster = runner.cluster
        self.take = take
        self.decoders: Decoders = {}
        self.steps = 0
        self.is_stated = cost is not None
        self.requires_budgets = requires_budgets
        self.is_plain = cost is None and not requires_budgets and not len(runner.cluster.budgets)
        """Whether nothing counts of a pod but its priority and its start."""
        self._runner = runner
        self._state = state
        self._for_known = runner.for_known_nodes(state)
        self._pod = pod
        self._kept = kept
        self._cost = UPSTREAM_COST if cost is None else cost
        self._facts = Facts(runner)
        before = [_VIOLATIONS.words] * requires_budgets + [AFFINITY_KEPT] * (kept is not None)
        self.criteria = (*before, *self._cost.words)
        """The criteria by which sets are compared, the first the weightiest."""
        self._before = len(before)
        has_negative = bool(take.priority.min(initial=0) < 0)
        self.bounding = len(before) + self._cost.bounding(has_negative=has_negative)
        """Of how many of the first criteria each by itself says no less of a set with one victim more."""
        self.grows = self._cost.grows(has_negative=has_negative)
        """Whether no set with one victim more costs less."""
        counted = self._cost.criteria[: self.bounding - len(before)]
        self.adds = np.array([False] * len(before) + [criterion.adds for criterion in counted])
        """Which of those add up what they say of each victim alone; the others say no less than the most of that."""
        self._floors = np.array([0] * len(before) + [criterion.floor for criterion in counted], dtype=np.int64)
        # What pods cost by themselves, for those of whom it was asked.
        self._alone = np.zeros((len(self.criteria), len(take)), dtype=np.int64)
        self._is_known_alone = np.zeros(len(take), dtype=np.bool_)

    def refused(self, rows: Int64s, sets: MemberSets) -> Int64s:
        """``[sets]``: 0 where the pod fits the row of the set without it, or else an entry of an `Outcome`."""
        refused = np.full(len(rows), NEEDS_PROTECTED, dtype=np.int64)
        asked = np.flatnonzero(sets.allowed)
        for first in range(0, len(asked), _MOST_WORLDS):
            some = asked[first : first + _MOST_WORLDS]
            refused[some] = self.said(self.worlds(rows[some], sets.only(some)))
        return refused

    def said(self, worlds: Worlds, *, are_known: bool = False) -> Int64s:
        """``[n]``: the same of some worlds; ``are_known``: the pod has been found to fit their rows without others."""
        self.steps += len(worlds)
        state = self._for_known if are_known else self._state
        outcome = self._runner.filter_worlds(state, self._pod, worlds, self._pod.uid)
        self.decoders.update(outcome.decoders)
        return outcome.refused

    def worlds(self, rows: Int64s, sets: MemberSets) -> Worlds:
        """The worlds of some rows without the sets."""
        worlds = Worlds(self.cluster, rows, many=True)
        worlds.remove_anywhere(sets.owners, self.take.slots[sets.members])
        return worlds

    def costs(self, rows: Int64s, sets: MemberSets) -> Int64s:
        """``[criteria, sets]``: what the sets cost, where the pod goes to these rows."""
        return self._columns(sets, np.zeros(len(self.criteria), dtype=np.int64), rows)

    def least(self, sets: MemberSets) -> Int64s:
        """``[bounding, sets]``: what sets cost at least that have these members, wherever the pod goes."""
        return self._columns(sets, self._floors)

    def alone(self, members: Int64s) -> Int64s:
        """``[criteria, members]``: what each by itself costs, wherever the pod goes."""
        unknown = members[~self._is_known_alone[members]]
        if len(unknown):
            some = occurring(unknown, len(self.take))
            sets = MemberSets(np.arange(len(some) + 1), some, np.ones(len(some), dtype=np.bool_))
            self._alone[:, some] = self._columns(sets, np.zeros(len(self.criteria), dtype=np.int64))
            self._is_known_alone[some] = True
        found: Int64s = self._alone[:, members]
        return found

    def violations(self, sets: MemberSets) -> Int64s:
        """``[sets]``: how many of the members would take more of a budget than is left."""
        if not len(self.cluster.budgets):
            return np.zeros(len(sets), dtype=np.int64)
        slots = self.take.slots[sets.members]
        violating = with_budgets(self.cluster, np.arange(len(sets)), sets.starts, slots).violating
        return np.bincount(sets.owners[violating], minlength=len(sets))

    def _columns(self, sets: MemberSets, of_nobody: Int64s, rows: Int64s | None = None) -> Int64s:
        """What the first criteria say, as many as there are values ``of_nobody`` for those sets that have no members.

        Where ``rows`` are not told, affinity counts as kept.
        """
        found = np.repeat(of_nobody[:, None], len(sets), axis=1)
        violations, before = self.violations(sets), self._before
        if self.requires_budgets:
            found[0] = violations
        if self._kept is not None and rows is not None:
            found[before - 1] = self._lonely(rows, sets)
        some = np.flatnonzero(np.diff(sets.starts))
        if len(some) and len(found) > before:
            stated = VictimSets(self._facts, sets.starts, self.take.slots[sets.members], violations).only(some)
            found[before:, some] = VictimCost(self._cost.criteria[: len(found) - before]).columns(stated)
        return found

    def _lonely(self, rows: Int64s, sets: MemberSets) -> Int64s:
        """``[sets]``: 1 where the last of those goes whom the pod requires to be near."""
        lonely = np.zeros(len(sets), dtype=np.int64)
        classes = self.cluster.pods.pod_class[self.take.slots[sets.members]]
        theirs = self.take.rows[sets.members]
        for reach in self._kept or ():
            codes = self.cluster.nodes.labels(reach.key).codes
            around = codes[theirs] == codes[rows[sets.owners]]
            goes = around & self.cluster.matcher(reach.predicate).matching(classes)
            gone = np.bincount(sets.owners[goes], minlength=len(sets))
            lonely[(gone > 0) & (self.cluster.domain_counts(reach.predicate, reach.key)[codes[rows]] == gone)] = 1
        return lonely

    def reprieve_order(self, pairs: Pairs, places: Int64s, *, partners_first: bool) -> Int64s:
        """Some of the pairs, by their places, in the order in which they are given back on each row.

        As kube-scheduler does: those whose disruption would violate a budget, were all of a row's to go, and then by
        their rank. Where a cost is stated, the dearest first. With ``partners_first`` the partners among them come
        first.
        """
        violating = self._violating(pairs)
        if not self.is_stated or self.requires_budgets:
            last = 2 * (~violating).astype(np.int64)
        else:
            last = np.zeros(len(violating), dtype=np.int64)
        if partners_first:
            last += ~pairs.partner
        if not self.is_stated:
            # The pairs of a row are in the order of their rank already.
            return places[in_order((pairs.owners[places] << 2) | last[places])]
        columns = self.alone(pairs.members[places])[self._before :]
        if _VIOLATIONS in self._cost.criteria:
            columns[self._cost.criteria.index(_VIOLATIONS)] = violating[places]
        keys = (pairs.members[places], *-columns[::-1], last[places], pairs.owners[places])
        order: Int64s = places[np.lexsort(keys)]
        return order

    def _violating(self, pairs: Pairs) -> Bools:
        """``[pairs]``: whose disruption would take more of a budget than is left, were all of a row's to go.

        What is left is given out from the most important pod, and from the least important where budgets are required.
        """
        if not len(self.cluster.budgets):
            return np.zeros(len(pairs.members), dtype=np.bool_)
        sets = sets_of(pairs.owners, pairs.members, len(pairs.rows))
        slots = self.take.slots[sets.members]
        if not self.requires_budgets:
            return with_budgets(self.cluster, pairs.rows, sets.starts, slots).violating
        starts = len(slots) - sets.starts[::-1]
        backwards: Bools = with_budgets(self.cluster, pairs.rows[::-1], starts, slots[::-1]).violating[::-1]
        return backwards
