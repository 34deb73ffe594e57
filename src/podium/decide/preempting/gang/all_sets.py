"""The cheapest way out of all there are, found by trying sets of victims in the order of what they cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.decide.preempting.costs.upstream import at_most
from podium.decide.preempting.gang.costing import Costing
from podium.decide.preempting.gang.descent import Step
from podium.decide.preempting.gang.gang import Gang
from podium.decide.preempting.gang.packing import Packing
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.gang.units import Unit, Units, union
from podium.decide.preempting.gang.world import World

MOST_UNITS = 14
"""Of more units their sets are not tried."""

Found = tuple[list[Unit], list[Step], World]
"""Victims, where members go without them, and the world that it is in."""


class AllSets:
    """Tries sets that cost less than the best way that is known.

    ``is_cut``: there were too many, or the steps were not enough for all of them. ``grows``: what sets cost grows with
    them. Otherwise all sets count of which no part is enough, and what is known is no limit to their cost.
    """

    def __init__(
        self, play: Play, gang: Gang, units: Units, costing: Costing, worlds: Sequence[World], most_steps: int
    ) -> None:
        self.is_cut = False
        self.grows = True
        self._found: dict[int, Found | None] = {}
        self._play = play
        self._gang = gang
        self._units = units
        self._costing = costing
        self._worlds = worlds
        self._most_steps = most_steps

    def best(self, limit: tuple[Sequence[int], int] | None) -> Found | None:
        """The cheapest one, with the fewest victims; None where none is better than ``limit``, a cost and a number."""
        nobody = self._fitting([])
        if nobody is not None or self.is_cut:
            return nobody
        units = self._units.few(MOST_UNITS)
        if units is None:
            self.is_cut = True
            return None
        if not units:
            return None
        sets = [_subset(units, mask) for mask in range(1, 1 << len(units))]
        costs, violations = self._costing.of([self._units.ordered(union(some)) for some in sets])
        wanted = np.ones(len(sets), dtype=np.bool_)
        if self._costing.requires_budgets:
            wanted &= violations == 0
        self.grows = self._costing.grows(union(units))
        sizes = np.array([len(union(some)) for some in sets])
        if limit is not None and self.grows:
            limits = np.array(limit[0], dtype=np.int64)
            wanted &= at_most(costs, limits) & ((costs != limits[:, None]).any(axis=0) | (sizes < limit[1]))
        order = np.flatnonzero(wanted)
        order = order[np.lexsort((sizes[order], *costs[::-1, order]))]
        for mask in (order + 1).tolist():
            found = self._known(units, mask)
            if found is not None and (self.grows or self._is_least(units, mask)):
                return found
            if self._is_over():
                return None
        return None

    def _is_over(self) -> bool:
        return self.is_cut

    def _is_least(self, units: Sequence[Unit], mask: int) -> bool:
        """Whether the gang does not fit without any part of a set."""
        part = (mask - 1) & mask
        while part:
            if self._known(units, part) is not None or self._is_over():
                return False
            part = (part - 1) & mask
        return True

    def _known(self, units: Sequence[Unit], mask: int) -> Found | None:
        """Where members go without a set, which is found out once."""
        if mask not in self._found:
            self._found[mask] = self._fitting(_subset(units, mask))
        return self._found[mask]

    def _fitting(self, units: list[Unit]) -> Found | None:
        """Where members go without some units, in the first world where that is possible."""
        play = self._play
        for world in self._worlds:
            play.take(union(units))
            packing = Packing(play, self._gang, world.allowed, self._most_steps)
            steps = packing.run()
            play.roll_back(play.base)
            self.is_cut |= packing.is_cut
            if steps is not None or self.is_cut:
                return None if steps is None else (units, steps, world)
        return None


def _subset(units: Sequence[Unit], mask: int) -> list[Unit]:
    """The units whose bits are set, the least important as the first digit."""
    last = len(units) - 1
    return [unit for place, unit in enumerate(units) if mask >> (last - place) & 1]
