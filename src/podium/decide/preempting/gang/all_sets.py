"""The cheapest way out of all there are, found by trying sets of victims in the order of what they cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Bools
from podium.decide.preempting.costs.upstream import at_most
from podium.decide.preempting.gang.costing import Costing
from podium.decide.preempting.gang.descent import Step
from podium.decide.preempting.gang.packing import Packing
from podium.decide.preempting.gang.partners import Partners
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.gang.shapes import Shapes
from podium.decide.preempting.gang.units import Unit, Units, union
from podium.decide.preempting.gang.ways import Rank
from podium.decide.preempting.gang.world import World

MOST_UNITS = 14
"""Of more units their sets are not tried."""

Found = tuple[list[Unit], list[Step], World]
"""Victims, where members go without them, and the world that it is in."""


class AllSets:
    """Tries sets that are better than the best way that is known: first beside the members' ``partners``, then without.

    ``is_cut``: there were too many, or the steps were not enough for all of them. ``grows``: what sets cost grows with
    them. Otherwise all sets count of which no part is enough, and what is known is no limit to their cost.
    """

    def __init__(
        self,
        play: Play,
        shapes: Shapes,
        units: Units,
        costing: Costing,
        worlds: Sequence[World],
        partners: Partners,
        most_steps: int,
    ) -> None:
        self.is_cut = False
        self.grows = True
        self._found: dict[int, Found | None] = {}
        self._play = play
        self._shapes = shapes
        self._units = units
        self._costing = costing
        self._worlds = worlds
        self._partners = partners
        self._keeps = bool(partners)
        self._most_steps = most_steps

    def best(self, limit: Rank | None) -> Found | None:
        """The best one that takes somebody; None where none is better than ``limit``."""
        units = self._units.few(MOST_UNITS)
        if units is None:
            self.is_cut = True
            return None
        if not units:
            return None
        sets = _Sets(self._units, self._costing, units)
        self.grows = sets.grows
        if self._keeps:
            found = self._first(sets, None if limit is None or limit[0] else limit)
            if found is not None or self._is_over() or (limit is not None and not limit[0]):
                return found
            self._keeps = False
            self._found.clear()
        return self._first(sets, limit)

    def _first(self, sets: _Sets, limit: Rank | None) -> Found | None:
        """The first set, in the order of what they cost, without which the gang fits."""
        for mask in sets.in_order(limit):
            found = self._known(sets, mask)
            if found is not None and (self.grows or self._is_least(sets, mask)):
                return found
            if self._is_over():
                return None
        return None

    def _is_over(self) -> bool:
        return self.is_cut

    def _is_least(self, sets: _Sets, mask: int) -> bool:
        """Whether the gang does not fit without any part of a set."""
        part = (mask - 1) & mask
        while part:
            if sets.may_go[part] and (self._known(sets, part) is not None or self._is_over()):
                return False
            part = (part - 1) & mask
        return True

    def _known(self, sets: _Sets, mask: int) -> Found | None:
        """Where members go without a set, which is found out once."""
        if mask not in self._found:
            self._found[mask] = self._fitting(sets.of(mask))
        return self._found[mask]

    def _fitting(self, units: list[Unit]) -> Found | None:
        """Where members go without some units, in the first world where that is possible."""
        play = self._play
        for world in self._worlds:
            play.take(union(units))
            partners = self._partners if self._keeps else None
            packing = Packing(play, self._shapes, world.allowed, self._most_steps, partners)
            steps = packing.run()
            play.roll_back(play.base)
            self.is_cut |= packing.is_cut
            if steps is not None or self.is_cut:
                return None if steps is None else (units, steps, world)
        return None


class _Sets:
    """All sets of some units, by mask, the least important as the first digit; ``may_go`` is ``[masks]``.

    ``grows``: whether no set with one unit more costs less.
    """

    def __init__(self, units: Units, costing: Costing, some: list[Unit]) -> None:
        self._units = some
        sets = [self.of(mask) for mask in range(1, 1 << len(some))]
        self._costs, violations = costing.of([units.ordered(union(each)) for each in sets])
        self._sizes = np.array([len(union(each)) for each in sets])
        self.grows = costing.grows(union(some))
        # Whoever goes along with others is in another set.
        allowed = [units.is_closed(union(each)) for each in sets]
        if costing.requires_budgets:
            allowed = [each and not number for each, number in zip(allowed, violations.tolist(), strict=True)]
        self.may_go: Bools = np.array([False, *allowed], dtype=np.bool_)

    def of(self, mask: int) -> list[Unit]:
        """The units whose bits are set."""
        last = len(self._units) - 1
        return [unit for place, unit in enumerate(self._units) if mask >> (last - place) & 1]

    def in_order(self, limit: Rank | None) -> list[int]:
        """The masks of sets that may go, by their cost; those alone, where that grows, that are below a limit."""
        costs, sizes = self._costs, self._sizes
        wanted = self.may_go[1:].copy()
        if limit is not None and self.grows:
            most = np.array(limit[1], dtype=np.int64)
            wanted &= at_most(costs, most) & ((costs != most[:, None]).any(axis=0) | (sizes < limit[2]))
        order = np.flatnonzero(wanted)
        order = order[np.lexsort((sizes[order], *costs[::-1, order]))]
        masks: list[int] = (order + 1).tolist()
        return masks
