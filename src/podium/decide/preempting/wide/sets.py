"""Sets of victims, many at once, and what the filters say of clusters without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s, pieces
from podium.cluster.pods import PodRecord
from podium.cluster.worlds import Worlds
from podium.decide.preempting.costs.upstream import costs_of_lists
from podium.decide.preempting.trial_table import CRITERIA, NEEDS_PROTECTED
from podium.decide.preempting.victims import with_budgets
from podium.decide.preempting.wide.potential import Pairs, Takeable
from podium.framework.cycle_state import CycleState
from podium.framework.handle import Handle
from podium.framework.reach import Reach
from podium.framework.verdicts import Decoders

AFFINITY_KEPT = "keeping whom the pod requires to be near"
"""The criterion that comes before all others where a preemptor keeps its partners."""

_MOST_WORLDS = 4_096


@dataclass(frozen=True, slots=True, eq=False)
class VictimSets:
    """Sets of members of a `Takeable`: ``members[starts[i]:starts[i + 1]]`` ascending, the most important first.

    ``allowed`` is ``[sets]``: false where a pod that may not be a victim would be one.
    """

    starts: Int64s
    members: Int64s
    allowed: Bools

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def owners(self) -> Int64s:
        """``[members]``: the set of each."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def only(self, positions: Int64s) -> VictimSets:
        """Some of the sets, in that order."""
        starts, places = pieces(self.starts, positions)
        return VictimSets(starts, self.members[places], self.allowed[positions])


def sets_of(owners: Int64s, members: Int64s, number: int) -> VictimSets:
    """So many sets, by owner; owners ascend, and so do the members of each."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=number))])
    return VictimSets(starts, members, np.ones(number, dtype=np.bool_))


class Asking:
    """Asks the filters whether a pod fits some rows without some sets of victims. Each answer about one is a step.

    ``kept`` are those whom the pod requires to be near, if that is a criterion: a set that leaves none of them around
    the row costs more than any that leaves one. The filters let such a pod in where it is the first of its group then.
    """

    def __init__(
        self, runner: Handle, state: CycleState, pod: PodRecord, take: Takeable, kept: Sequence[Reach] | None = None
    ) -> None:
        self.cluster = runner.cluster
        self.take = take
        self.decoders: Decoders = {}
        self.steps = 0
        self._runner = runner
        self._state = state
        self._pod = pod
        self._kept = kept

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria by which sets are compared, the first the weightiest."""
        return CRITERIA if self._kept is None else (AFFINITY_KEPT, *CRITERIA)

    def refused(self, rows: Int64s, sets: VictimSets) -> Int64s:
        """``[sets]``: 0 where the pod fits the row of the set without it, or else an entry of an `Outcome`."""
        refused = np.full(len(rows), NEEDS_PROTECTED, dtype=np.int64)
        asked = np.flatnonzero(sets.allowed)
        for first in range(0, len(asked), _MOST_WORLDS):
            some = asked[first : first + _MOST_WORLDS]
            refused[some] = self._refused(self.worlds(rows[some], sets.only(some)))
        return refused

    def worlds(self, rows: Int64s, sets: VictimSets) -> Worlds:
        """The worlds of some rows without the sets."""
        worlds = Worlds(self.cluster, rows, many=True)
        worlds.remove_anywhere(sets.owners, self.take.slots[sets.members])
        return worlds

    def fit(self, worlds: Worlds) -> Bools:
        """``[n]``: which of some worlds the pod fits."""
        fits: Bools = self._refused(worlds) == 0
        return fits

    def costs(self, rows: Int64s, sets: VictimSets) -> Int64s:
        """``[criteria, sets]``: what the sets cost, where the pod goes to these rows."""
        slots = self.take.slots[sets.members]
        violating = with_budgets(self.cluster, np.arange(len(sets)), sets.starts, slots).violating
        costs = costs_of_lists(self.cluster, sets.starts, slots, violating)
        return costs if self._kept is None else np.concatenate([[self._lonely(rows, sets)], costs])

    def _lonely(self, rows: Int64s, sets: VictimSets) -> Int64s:
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

    def violating(self, pairs: Pairs) -> Bools:
        """``[pairs]``: whose disruption would take more of a budget than is left, were all of a row's to go."""
        sets = sets_of(pairs.owners, pairs.members, len(pairs.rows))
        return with_budgets(self.cluster, pairs.rows, sets.starts, self.take.slots[sets.members]).violating

    def _refused(self, worlds: Worlds) -> Int64s:
        self.steps += len(worlds)
        outcome = self._runner.filter_worlds(self._state, self._pod, worlds, self._pod.uid)
        self.decoders.update(outcome.decoders)
        return outcome.refused
