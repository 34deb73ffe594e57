"""Sparing victims one by one, on all rows at once, in the order of what they cost.

As within a node (`podium.decide.preempting.victims`), but that the victims may be anywhere. Round k gives the k-th pod
of every row back.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.decide.preempting.costs.upstream import at_most
from podium.decide.preempting.wide.dependents import Dependents
from podium.decide.preempting.wide.potential import Pairs
from podium.decide.preempting.wide.sets import Asking, MemberSets, sets_of


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
        order, starts = self._order(pairs, np.flatnonzero(gone & ~pairs.forced))
        if self._dependents is None and self._is_monotone:
            return self._incrementally(pairs, gone, order, starts, limit)
        left = gone
        while True:
            before, left = left, self._anew(pairs, left, order, starts)
            if np.array_equal(before, left):
                return left

    def _order(self, pairs: Pairs, may_stay: Int64s) -> tuple[Int64s, Int64s]:
        """The pairs that may be given back in their order, and where each row's begin; and the end."""
        order = self._asking.reprieve_order(pairs, may_stay, partners_first=self._partners_first)
        numbers = np.bincount(pairs.owners[order], minlength=len(pairs.rows))
        return order, np.concatenate([[0], np.cumsum(numbers)])

    def _incrementally(self, pairs: Pairs, gone: Bools, order: Int64s, starts: Int64s, limit: Int64s | None) -> Bools:
        asking, left = self._asking, gone.copy()
        slots = asking.take.slots
        worlds = asking.worlds(pairs.rows, _sets(pairs, gone))
        lengths = np.diff(starts)
        playing = np.arange(len(pairs.rows))
        fixed = None if limit is None else _Fixed(asking, pairs)
        for turn in range(int(lengths.max(initial=0))):
            playing = playing[lengths[playing] > turn]
            if fixed is not None and limit is not None:
                playing = playing[fixed.may_beat(playing, limit)]
            pods = order[starts[playing] + turn]
            trial = worlds.at(playing)
            trial.add_anywhere(np.arange(len(playing)), slots[pairs.members[pods]])
            fits = asking.fit(trial)
            left[pods[fits]] = False
            worlds.add_anywhere(playing[fits], slots[pairs.members[pods[fits]]])
            if fixed is not None:
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
    """What those victims cost, at least, that are certain on each row."""

    def __init__(self, asking: Asking, pairs: Pairs) -> None:
        self._asking = asking
        self._members = pairs.members
        self._bounds = asking.least(_sets(pairs, pairs.forced))

    def may_beat(self, positions: Int64s, limit: Int64s) -> Bools:
        """``[positions]``: where that is no more than a limit."""
        return at_most(self._bounds[:, positions], limit[: len(self._bounds)])

    def add(self, positions: Int64s, places: Int64s) -> None:
        """Some pairs, by the positions of their rows, each once, whose pods cannot be spared."""
        alone = self._asking.alone(self._members[places])[: len(self._bounds)]
        before = self._bounds[:, positions]
        adds = self._asking.adds[:, None]
        self._bounds[:, positions] = np.where(adds, before + alone, np.maximum(before, alone))


def _sets(pairs: Pairs, gone: Bools) -> MemberSets:
    return sets_of(pairs.owners[gone], pairs.members[gone], len(pairs.rows))
