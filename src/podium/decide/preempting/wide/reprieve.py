"""Sparing victims one by one, on all rows at once: those whose disruption would violate a budget first, then by rank.

As within a node (`podium.decide.preempting.victims`), but that the victims may be anywhere. Round k gives the k-th pod
of every row back.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.decide.preempting.costs.upstream import PRIORITY_SHIFT, at_most
from podium.decide.preempting.wide.dependents import Dependents
from podium.decide.preempting.wide.potential import Pairs
from podium.decide.preempting.wide.sets import Asking, VictimSets, sets_of


class Reprieve:
    """Gives victims back where the pod still fits.

    Where ``dependents`` are victims too, a pod is given back with those of them that nobody else takes along. Where a
    pod less may keep the preemptor off (not ``is_monotone``), those that could not be spared are tried again once
    others were. With ``partners_first`` pods that the preemptor requires to be near are given back before all others.
    """

    def __init__(
        self, asking: Asking, dependents: Dependents | None, *, is_monotone: bool, partners_first: bool
    ) -> None:
        self._asking = asking
        self._dependents = dependents
        self._is_monotone = is_monotone
        self._partners_first = partners_first

    def left(self, pairs: Pairs, gone: Bools, limit: Int64s | None = None) -> Bools:
        """``[pairs]``: those of the ``gone`` ones that cannot be spared; the pod fits without all of these.

        Rows are given up, with some that could yet be spared, once those that cannot be cost more than ``limit``.
        """
        order, starts = self._order(pairs, gone)
        if self._dependents is None and self._is_monotone:
            return self._incrementally(pairs, gone, order, starts, limit)
        left = gone
        while True:
            before, left = left, self._anew(pairs, left, order, starts)
            if np.array_equal(before, left):
                return left

    def _order(self, pairs: Pairs, gone: Bools) -> tuple[Int64s, Int64s]:
        """The pairs that may be given back in their order, and where each row's begin; and the end."""
        last = 2 * (~self._asking.violating(pairs)).astype(np.int64)
        if self._partners_first:
            last += ~pairs.partner
        may_stay = np.flatnonzero(gone & ~pairs.forced)
        order = may_stay[np.lexsort((pairs.members[may_stay], last[may_stay], pairs.owners[may_stay]))]
        numbers = np.bincount(pairs.owners[order], minlength=len(pairs.rows))
        return order, np.concatenate([[0], np.cumsum(numbers)])

    def _incrementally(self, pairs: Pairs, gone: Bools, order: Int64s, starts: Int64s, limit: Int64s | None) -> Bools:
        asking, left = self._asking, gone.copy()
        slots = asking.take.slots
        worlds = asking.worlds(pairs.rows, _sets(pairs, gone))
        lengths = np.diff(starts)
        playing = np.arange(len(pairs.rows))
        fixed = _Fixed(pairs, asking.take.priority)
        for turn in range(int(lengths.max(initial=0))):
            playing = playing[lengths[playing] > turn]
            if limit is not None:
                playing = playing[fixed.may_beat(playing, limit)]
            pods = order[starts[playing] + turn]
            trial = worlds.at(playing)
            trial.add_anywhere(np.arange(len(playing)), slots[pairs.members[pods]])
            fits = asking.fit(trial)
            left[pods[fits]] = False
            worlds.add_anywhere(playing[fits], slots[pairs.members[pods[fits]]])
            fixed.add(playing[~fits], pods[~fits])
        return left

    def _anew(self, pairs: Pairs, gone: Bools, order: Int64s, starts: Int64s) -> Bools:
        """The same with each set of victims made anew, with those that depend on them."""
        left, lengths = gone.copy(), np.diff(starts)
        for turn in range(int(lengths.max(initial=0))):
            playing = np.flatnonzero(lengths > turn)
            pods = order[starts[playing] + turn]
            playing, pods = playing[left[pods]], pods[left[pods]]
            if not len(playing):
                continue
            trial = left.copy()
            trial[pods] = False
            sets = _sets(pairs, trial).only(playing)
            if self._dependents is not None:
                sets = self._dependents.closed(sets)
            fits = self._asking.refused(pairs.rows[playing], sets) == 0
            left[pods[fits]] = False
        return left


class _Fixed:
    """What those victims cost, at least, that are certain on each row: highest priority, sum, and number."""

    def __init__(self, pairs: Pairs, priority: Int64s) -> None:
        self._pairs = pairs
        self._priority = priority
        self._bounds = np.zeros((3, len(pairs.rows)), dtype=np.int64)
        self._bounds[0] = np.iinfo(np.int64).min
        self.add(pairs.owners[pairs.forced], np.flatnonzero(pairs.forced))

    def may_beat(self, positions: Int64s, limit: Int64s) -> Bools:
        """``[positions]``: where that is no more than a limit."""
        bounds = np.zeros((len(limit) - 1, len(positions)), dtype=np.int64)
        bounds[-3:] = self._bounds[:, positions]
        return at_most(bounds, limit[:-1])

    def add(self, positions: Int64s, places: Int64s) -> None:
        """Some pairs, by the positions of their rows, whose pods cannot be spared."""
        priority = self._priority[self._pairs.members[places]]
        np.maximum.at(self._bounds[0], positions, priority)
        np.add.at(self._bounds[1], positions, priority + PRIORITY_SHIFT)
        np.add.at(self._bounds[2], positions, 1)


def _sets(pairs: Pairs, gone: Bools) -> VictimSets:
    return sets_of(pairs.owners[gone], pairs.members[gone], len(pairs.rows))
