"""The search for the cheapest victims on any nodes.

For each row there are those who have to go in any case: all whom an anti-affinity keeps apart from the pod, for one.
If that is enough, nothing cheaper is. Otherwise all who may be victims go, and are spared one by one. Rows are looked
at in the order of what they cost at least, and no further than a cheaper set can be. At last, where few enough pods are
left that may stay or go, all sets of them are tried, so that the answer is the best one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.decide.preempting.costs.upstream import at_most
from podium.decide.preempting.trial_table import WITHOUT_VICTIMS, TrialTable
from podium.decide.preempting.wide.dependents import Dependents
from podium.decide.preempting.wide.potential import Potential
from podium.decide.preempting.wide.results import WideResults
from podium.decide.preempting.wide.sets import Asking, MemberSets
from podium.decide.preempting.wide.settled import cost_least_alone
from podium.decide.preempting.wide.sparing import Beginning, Sparing
from podium.decide.preempting.wide.subsets import MOST_FREE, best_sets
from podium.decide.preempting.wide.wide_settings import WideSettings
from podium.framework.reach import Reaches

_FEWEST_ROWS = 256
_FEW_ROWS = 512
# So many places there may be in all sets of those who may stay or go, of one row, and of the rows looked at together.
_MOST_CELLS = 1 << 21
_CELLS_TOGETHER = 1 << 17


@dataclass(frozen=True, slots=True)
class Search:
    """How the victims were looked for: of ``most_steps`` so many were made, and so many nodes ``left_out`` for that.

    ``is_complete``: there is no cheaper choice than the one that was found, by the criteria.
    """

    steps: int
    most_steps: int
    left_out: int
    is_complete: bool


class WideSearch:
    """One search, for one pod. Positions are those in ``rows``."""

    def __init__(
        self,
        asking: Asking,
        potential: Potential,
        dependents: Dependents | None,
        reaches: Reaches,
        rows: Int64s,
        settings: WideSettings,
    ) -> None:
        self._asking = asking
        self._potential = potential
        self._dependents = dependents
        self._rows = rows
        self._settings = settings
        self._is_monotone = reaches.is_monotone and dependents is None
        self._sparing = Sparing(
            asking, dependents, is_monotone=self._is_monotone, partners_first=settings.keeps_partners
        )
        self._results = WideResults(asking, rows)
        self._bounds = self._at_least()
        # Or else it may cost less, of two sets, to take the one that has the other in it.
        self._prunes = asking.grows or self._is_monotone
        # Where no cheaper set can be.
        self._proven: Bools = np.zeros(len(rows), dtype=np.bool_)
        # For rows that were looked at: how many may be victims, and how many of these may stay.
        self._members: Int64s = np.zeros(len(rows), dtype=np.int64)
        self._free: Int64s = np.zeros(len(rows), dtype=np.int64)
        self._charged = 0
        self._left_out = 0
        self._is_complete = False

    @property
    def search(self) -> Search:
        """How it went."""
        return Search(self._asking.steps, self._settings.most_steps, self._left_out, self._is_complete)

    def table(self) -> TrialTable:
        """What it came to."""
        return self._results.table()

    def run(self, *, detailed: bool) -> None:
        """Look for the victims."""
        looks_at_all = detailed or not self._prunes
        numbers = self._potential.numbers(self._rows)
        self._results.refused[numbers == 0] = WITHOUT_VICTIMS
        self._proven |= numbers == 0
        order = self._within(numbers)
        best = None
        for block in self._blocks(order):
            if best is not None and not looks_at_all and not self._may_beat(block, best).any():
                break
            best = self._try(np.sort(block), best, looks_at_all=looks_at_all)
        self._improve(order, best, detailed=detailed)

    def _at_least(self) -> Int64s:
        """``[bounding, rows]``: what the victims on each row cost at least, for those who have to go in any case."""
        asking = self._asking
        nobody = MemberSets(np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int64), np.ones(1, dtype=np.bool_))
        found = np.repeat(asking.least(nobody), len(self._rows), axis=1)
        for starts, members, of_row in self._potential.forced(self._rows):
            sets = MemberSets(starts, members, np.ones(len(starts) - 1, dtype=np.bool_))
            np.maximum(found, asking.least(sets)[:, of_row], out=found)
        return found

    def _within(self, numbers: Int64s) -> Int64s:
        """The positions to look at, as many as the steps are enough for: those first that cost the least at least."""
        positions = np.flatnonzero(numbers)
        name_hash = self._asking.cluster.nodes.name_hash[self._rows[positions]]
        order = positions[np.lexsort((name_hash, *self._bounds[::-1, positions]))]
        charges = np.cumsum(numbers[order] + 2)
        enough = max(1, int(np.searchsorted(charges, self._settings.most_steps, side="right")))
        self._left_out = max(0, len(order) - enough)
        order = order[:enough]
        self._charged = int(charges[len(order) - 1]) if len(order) else 0
        return order

    def _blocks(self, order: Int64s) -> Iterator[Int64s]:
        """The positions in blocks of some hundred, so that the first ones limit what others may cost.

        Later on rows that nothing tells apart are in one.
        """
        bounds = self._bounds[:, order]
        ends = np.append(np.flatnonzero((bounds[:, 1:] != bounds[:, :-1]).any(axis=0)) + 1, len(order))
        first, end = 0, min(_FEWEST_ROWS, len(order))
        while first < len(order):
            yield order[first:end]
            first = end
            end = int(ends[np.searchsorted(ends, min(first + _FEWEST_ROWS, len(order)))])

    def _may_beat(self, positions: Int64s, best: Int64s) -> Bools:
        """Where something may be found that costs as little as the best, or less."""
        return at_most(self._bounds[:, positions], best[: len(self._bounds)])

    def _try(self, block: Int64s, best: Int64s | None, *, looks_at_all: bool) -> Int64s | None:
        """Try the rows at some positions, ascending; the cost of the best so far."""
        pairs = self._potential.pairs(self._rows[block])
        begun = self._sparing.begin(pairs)
        enough = np.flatnonzero(begun.refused == 0)
        self._results.put(block[enough], begun.needed.only(enough))
        self._proven[block[enough]] = True
        best = self._results.best()
        rest = np.flatnonzero(begun.refused)
        if best is not None and not looks_at_all:
            # What has to go there as well costs more than what has to go in any case.
            rest = rest[self._may_beat(block[rest], best)]
        if len(rest):
            self._spare(block[rest], begun.only(rest), None if looks_at_all else best)
        return self._results.best()

    def _spare(self, positions: Int64s, begun: Beginning, limit: Int64s | None) -> None:
        """Let all go who may, and spare those who need not, where that costs no more than ``limit``."""
        pairs = begun.pairs
        self._members[positions] = np.bincount(pairs.owners, minlength=len(positions))
        self._free[positions] = np.bincount(pairs.owners[~pairs.forced], minlength=len(positions))
        spared = self._sparing.go_on(begun, limit)
        self._results.refused[positions] = spared.refused
        self._results.put(positions[spared.refused == 0], spared.sets)
        self._proven[positions[spared.is_settled]] = True

    def _improve(self, order: Int64s, best: Int64s | None, *, detailed: bool) -> None:
        """Try all sets where a cheaper one may be, if the steps are enough for all of these."""
        left = order[~self._proven[order]]
        if best is not None and self._prunes:
            left = left[self._may_beat(left, best)]
        left = left[~self._settled(left)]
        if not self._are_enough(left):
            return
        for block in self._together(left):
            pairs = self._potential.pairs(self._rows[block])
            limit = self._results.best() if self._prunes else None
            found, sets, costs = best_sets(self._asking, self._dependents, pairs, limit, all_rows=detailed)
            better = self._are_better(block[found], sets, costs)
            self._results.put(block[found[better]], sets.only(better))
        self._is_complete = not self._left_out

    def _settled(self, positions: Int64s) -> Bools:
        """``[positions]``: where nothing better is to be found than the results."""
        taken = self._results.numbers(positions)
        settled = np.zeros(len(positions), dtype=np.bool_)
        if self._is_monotone:
            # Nobody who may be a victim could be spared: nothing but all of them is enough.
            settled |= (taken > 0) & (taken == self._members[positions])
        if self._asking.grows:
            alone = np.flatnonzero(taken == 1)
            for first in range(0, len(alone), _FEW_ROWS):
                some = alone[first : first + _FEW_ROWS]
                pairs = self._potential.pairs(self._rows[positions[some]])
                settled[some] |= cost_least_alone(self._asking, pairs, self._results.costs[:, positions[some]])
        return settled

    def _together(self, positions: Int64s) -> Iterator[Int64s]:
        """The positions in blocks of which all sets are looked at together, in the order of their bounds."""
        cells = np.cumsum(self._members[positions] << self._free[positions]) // _CELLS_TOGETHER
        starts = np.flatnonzero(np.append(True, cells[1:] != cells[:-1])) if len(positions) else ()
        for first, end in pairwise([*starts, len(positions)]):
            yield np.sort(positions[first:end])

    def _are_better(self, positions: Int64s, sets: MemberSets, costs: Int64s) -> Int64s:
        """The sets that are better than what was found for rows: they cost something else, or have fewer victims."""
        results = self._results
        better = (results.refused[positions] != 0) | (costs != results.costs[:, positions]).any(axis=0)
        return np.flatnonzero(better | (np.diff(sets.starts) < results.numbers(positions)))

    def _are_enough(self, positions: Int64s) -> bool:
        """Whether the steps that are left are enough to try all sets of those who may stay or go, on all these rows."""
        free = self._free[positions]
        if free.max(initial=0) > MOST_FREE or (self._members[positions] << free).max(initial=0) > _MOST_CELLS:
            return False
        return int((1 << free).sum()) <= self._settings.most_steps - self._charged
