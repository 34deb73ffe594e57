"""Which victims cost least, by criteria that a configuration states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Int64s
from podium.decide.preempting.costs.criteria import CRITERIA, Criterion, CriterionName
from podium.decide.preempting.costs.victim_sets import VictimSets


class VictimCost:
    """Criteria in their order; a later one counts where all earlier ones leave sets equal."""

    def __init__(self, names: Sequence[CriterionName]) -> None:
        """Raises ValueError where a name is there twice, or there is none."""
        if not names or len(set(names)) < len(names):
            raise ValueError("it must name at least one criterion, and none of them twice")
        self.criteria: tuple[Criterion, ...] = tuple(CRITERIA[name] for name in names)

    def cheapest(self, sets: VictimSets) -> tuple[Int64s, str]:
        """The sets that cost least, and the words of the last criterion that told some apart ("" for none)."""
        left, deciding = np.arange(len(sets)), ""
        for criterion in self.criteria:
            if len(left) < 2:
                break
            values = criterion.values(sets.only(left))
            best = values == values.min()
            if not best.all():
                left, deciding = left[best], criterion.words
        return left, deciding

    def columns(self, sets: VictimSets) -> Int64s:
        """``[criteria, sets]``: what each set costs."""
        return np.stack([criterion.values(sets) for criterion in self.criteria])

    def reprieve_order(self, sets: VictimSets, groups: Int64s) -> Int64s:
        """Sets of one pod each in the order in which they are spared: by group, the dearest first, then as they come.

        ``groups`` is ``[sets]``, ascending.
        """
        keys = [-criterion.values(sets) for criterion in self.criteria]
        order: Int64s = np.lexsort((*reversed(keys), groups))
        return order
