"""Sparing victims one by one, on all rows at once, in the order of what they cost.

As within a node (`podium.decide.preempting.victims`), but that the victims may be anywhere. Round k gives the k-th pod
of every row back.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.worlds import Worlds
from podium.decide.preempting.costs.upstream import at_most
from podium.decide.preempting.wide.dependents import Dependents
from podium.decide.preempting.wide.potential import Pairs
from podium.decide.preempting.wide.sets import Asking, MemberSets, sets_of


class Reprieve:
    """Gives victims back where the pod still fits.

    Where ``dependents`` are victims too, a pod is given back with those of them that nobody else takes along. With
    ``partners_first`` pods that the preemptor requires to be near are given back before all others.
    """

    def __init__(self, asking: Asking, dependents: Dependents | None, *, partners_first: bool) -> None:
        self._asking = asking
        self._dependents = dependents
        self._partners_first = partners_first

    def left(self, pairs: Pairs, gone: Bools) -> Bools:
        """``[pairs]``: those of the ``gone`` ones that cannot be spared; the pod fits without all of these.

        A pod less may keep the preemptor off, so that whoever could not be spared is tried again once others were.
        """
        order, starts = self._order(pairs, np.flatnonzero(gone & ~pairs.forced))
        left = gone
        while True:
            before, left = left, self._anew(pairs, left, order, starts)
            if np.array_equal(before, left):
                return left

    def left_in(self, worlds: Worlds, pairs: Pairs, limit: Int64s | None) -> Bools:
        """The same where all are gone, nobody depends on them, and a pod less never keeps the preemptor off.

        ``worlds`` are those of the rows without them, and change. Rows are given up, with some that could yet be
        spared, once those that cannot be cost more than ``limit``.
        """
        asking, left = self._asking, np.ones(len(pairs.owners), dtype=np.bool_)
        order, starts = self._order(pairs, np.flatnonzero(~pairs.forced))
        slots = asking.take.slots[pairs.members]
        lengths = np.diff(starts)
        playing = np.arange(len(pairs.rows))
        fixed = None if limit is None else _Fixed(asking, pairs)
        for turn in range(int(lengths.max(initial=0))):
            playing = playing[lengths[playing] > turn]
            if fixed is not None and limit is not None:
                playing = playing[fixed.may_beat(playing, limit)]
            if not len(playing):
                break
            pods = order[starts[playing] + turn]
            trial = worlds.at(playing)
            trial.add_anywhere(np.arange(len(playing)), slots[pods])
            fits = asking.said(trial, are_known=True) == 0
            left[pods[fits]] = False
            if len(playing) == len(worlds) and fits.all():
                worlds = trial
            elif fits.any():
                worlds.add_anywhere(playing[fits], slots[pods[fits]])
            if fixed is not None:
                fixed.add(playing[~fits], pods[~fits])
        return left

    def left_of_alike(self, worlds: Worlds, pairs: Pairs, may_all_stay: Bools) -> Bools:
        """The same where nothing tells the pods of a row apart that may stay, so that it is their number that counts.

        ``may_all_stay`` is ``[rows]``: where it is not known that the pod does not fit beside all of these. Half of
        those in doubt are given back together.
        """
        asking, left = self._asking, np.ones(len(pairs.owners), dtype=np.bool_)
        order, starts = self._order(pairs, np.flatnonzero(~pairs.forced))
        slots = asking.take.slots[pairs.members[order]]
        lengths = np.diff(starts)
        # As many may stay, and so many may not.
        stay, too_many = np.zeros(len(pairs.rows), dtype=np.int64), lengths + may_all_stay
        while len(playing := np.flatnonzero(too_many - stay > 1)):
            middle = (stay[playing] + too_many[playing]) // 2
            back = middle - stay[playing]
            owners = np.repeat(np.arange(len(playing)), back)
            firsts = starts[playing] + stay[playing] - (np.cumsum(back) - back)
            pods = slots[firsts[owners] + np.arange(len(owners))]
            trial = worlds.at(playing)
            trial.add_anywhere(owners, pods)
            fits = asking.said(trial, are_known=True) == 0
            stay[playing[fits]], too_many[playing[~fits]] = middle[fits], middle[~fits]
            given = fits[owners]
            worlds.add_anywhere(playing[owners[given]], pods[given])
        in_row = np.arange(len(order)) - np.repeat(starts[:-1], lengths)
        left[order[in_row < np.repeat(stay, lengths)]] = False
        return left

    def _order(self, pairs: Pairs, may_stay: Int64s) -> tuple[Int64s, Int64s]:
        """The pairs that may be given back in their order, and where each row's begin; and the end."""
        order = self._asking.reprieve_order(pairs, may_stay, partners_first=self._partners_first)
        numbers = np.bincount(pairs.owners[order], minlength=len(pairs.rows))
        return order, np.concatenate([[0], np.cumsum(numbers)])

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
