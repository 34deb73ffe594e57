"""Who goes for a pod on each of some rows: those who have to, and of the others whoever cannot be spared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.worlds import Worlds
from podium.decide.preempting.trial_table import NOT_TRIED
from podium.decide.preempting.wide.dependents import Dependents
from podium.decide.preempting.wide.potential import Pairs
from podium.decide.preempting.wide.reprieve import Reprieve
from podium.decide.preempting.wide.sets import Asking, MemberSets, sets_of
from podium.decide.preempting.wide.settled import all_alike

_MOST_PARTNERS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Beginning:
    """Rows without those who have to go there in any case, ``needed``; and why that is not enough, 0 where it is.

    ``worlds`` are those of the rows without them, None where they would be of no use.
    """

    pairs: Pairs
    needed: MemberSets
    refused: Int64s
    worlds: Worlds | None

    def only(self, positions: Int64s) -> Beginning:
        """The same for some of the rows, given by their positions, ascending."""
        if len(positions) == len(self.refused):
            return self
        worlds = None if self.worlds is None else self.worlds.at(positions)
        return Beginning(self.pairs.only(positions), self.needed.only(positions), self.refused[positions], worlds)


@dataclass(frozen=True, slots=True, eq=False)
class Spared:
    """Why the pod does not fit rows whoever goes, 0 where it does; and the victims on those where it does.

    ``is_settled`` is ``[rows]``: where it is known that there are no cheaper ones.
    """

    refused: Int64s
    sets: MemberSets
    is_settled: Bools


class Sparing:
    """Finds victims row by row. Where a pod less may keep the preemptor off (not ``is_monotone``), in several ways."""

    def __init__(
        self, asking: Asking, dependents: Dependents | None, *, is_monotone: bool, partners_first: bool
    ) -> None:
        self._asking = asking
        self._dependents = dependents
        self._is_monotone = is_monotone
        self._reprieve = Reprieve(asking, dependents, partners_first=partners_first)

    def begin(self, pairs: Pairs) -> Beginning:
        """Let those go who have to."""
        forced = pairs.forced
        needed = self._closed(sets_of(pairs.owners[forced], pairs.members[forced], len(pairs.rows)))
        if not self._is_monotone:
            return Beginning(pairs, needed, self._asking.refused(pairs.rows, needed), None)
        worlds = self._asking.worlds(pairs.rows, needed)
        # Of rows on which nobody has to go it is known that they do not take the pod as they are.
        refused = self._asking.said(worlds) if forced.any() else np.full(len(pairs.rows), NOT_TRIED, dtype=np.int64)
        return Beginning(pairs, needed, refused, worlds)

    def go_on(self, begun: Beginning, limit: Int64s | None) -> Spared:
        """Let all others go too, and spare those who need not, where that costs no more than ``limit``."""
        if begun.worlds is None:
            return self._in_several_ways(begun.pairs)
        pairs, worlds = begun.pairs, begun.worlds
        free = ~pairs.forced
        worlds.remove_anywhere(pairs.owners[free], self._asking.take.slots[pairs.members[free]])
        refused = self._asking.said(worlds)
        is_settled = refused != 0
        fitting = np.flatnonzero(refused == 0)
        if not len(fitting):
            return Spared(refused, MemberSets.none(), is_settled)
        begun = begun.only(fitting)
        pairs = begun.pairs
        alike = all_alike(self._asking, pairs)
        left = np.empty(len(pairs.owners), dtype=np.bool_)
        for some, are_alike in ((np.flatnonzero(alike), True), (np.flatnonzero(~alike), False)):
            if len(some):
                left[alike[pairs.owners] == are_alike] = self._left(begun.only(some), limit, are_alike=are_alike)
        # By other criteria than priority and start some of those alike may be cheaper than others.
        is_settled[fitting] = alike & self._asking.is_plain
        sets = sets_of(pairs.owners[left], pairs.members[left], len(fitting))
        return Spared(refused, sets, is_settled)

    def _left(self, begun: Beginning, limit: Int64s | None, *, are_alike: bool) -> Bools:
        """``[pairs]``: who cannot be spared."""
        worlds, pairs = begun.worlds, begun.pairs
        if worlds is None:
            raise ValueError("there are no worlds of these rows, since a pod less may keep the preemptor off")
        if are_alike:
            return self._reprieve.left_of_alike(worlds, pairs, begun.refused == NOT_TRIED)
        return self._reprieve.left_in(worlds, pairs, limit)

    def _in_several_ways(self, pairs: Pairs) -> Spared:
        """The same where a start with all may not fit, and one with fewer does."""
        number = len(pairs.rows)
        refused = np.zeros(number, dtype=np.int64)
        gone = np.ones(len(pairs.owners), dtype=np.bool_)
        undecided = np.arange(number)
        for start in self._starts(pairs):
            sets = self._closed(sets_of(pairs.owners[start], pairs.members[start], number).only(undecided))
            refused[undecided] = said = self._asking.refused(pairs.rows[undecided], sets)
            fits = np.zeros(number, dtype=np.bool_)
            fits[undecided[said == 0]] = True
            gone = np.where(fits[pairs.owners], start, gone)
            undecided = undecided[said != 0]
            if not len(undecided):
                break
        fitting = np.flatnonzero(refused == 0)
        is_settled = np.zeros(number, dtype=np.bool_)
        if not len(fitting):
            return Spared(refused, MemberSets.none(), is_settled)
        some = pairs.only(fitting)
        left = self._reprieve.left(some, gone[refused[pairs.owners] == 0])
        sets = self._closed(sets_of(some.owners[left], some.members[left], len(fitting)))
        return Spared(refused, sets, is_settled)

    def _starts(self, pairs: Pairs) -> Iterator[Bools]:
        """Whom to let go at first, one choice after the other until the pod fits: ``[pairs]``.

        First those whom it requires to be near stay, then but one of them; then all go; then all whom others depend on
        stay; and then all on other nodes.
        """
        everybody = np.ones(len(pairs.owners), dtype=np.bool_)
        if pairs.partner.any():
            yield ~pairs.partner
            place = _places(pairs)
            for kept in range(min(_MOST_PARTNERS, int(place[pairs.partner].max()) + 1)):
                yield ~(pairs.partner & (place == kept))
        yield everybody
        if self._dependents is not None:
            yield ~self._dependents.are_of(pairs.members) | pairs.forced
        yield pairs.own | pairs.forced

    def _closed(self, sets: MemberSets) -> MemberSets:
        return sets if self._dependents is None else self._dependents.closed(sets)


def _places(pairs: Pairs) -> Int64s:
    """``[pairs]``: of those whom the pod requires to be near, how many on the same row come first."""
    before = np.concatenate([[0], np.cumsum(pairs.partner)])
    firsts = np.searchsorted(pairs.owners, pairs.owners)
    places: Int64s = before[:-1] - before[firsts]
    return places
