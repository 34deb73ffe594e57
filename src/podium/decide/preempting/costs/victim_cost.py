"""Which victims cost least, by criteria in their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Int64s
from podium.decide.preempting.costs.criteria import CRITERIA, UPSTREAM, Criterion, CriterionName
from podium.decide.preempting.costs.victim_sets import VictimSets

_HIGHEST_PRIORITY = CRITERIA["HighestPriority"]


class VictimCost:
    """Criteria in their order; a later one counts where all earlier ones leave sets equal."""

    def __init__(self, criteria: Sequence[Criterion]) -> None:
        self.criteria = tuple(criteria)

    @classmethod
    def stated(cls, names: Sequence[CriterionName]) -> VictimCost:
        """Those of these names. Raises ValueError where a name is there twice, or there is none."""
        if not names or len(set(names)) < len(names):
            raise ValueError("it must name at least one criterion, and none of them twice")
        return cls([CRITERIA[name] for name in names])

    @property
    def words(self) -> tuple[str, ...]:
        """What the criteria are called."""
        return tuple(criterion.words for criterion in self.criteria)

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
        order: Int64s = np.lexsort((*-self.columns(sets)[::-1], groups))
        return order

    def bounding(self, *, has_negative: bool) -> int:
        """Of how many of the first criteria each by itself grows, or stays, with every further victim.

        ``has_negative``: whether there are victims of negative priority.
        """
        for place, criterion in enumerate(self.criteria):
            if criterion.growth != "Always" and (criterion.growth != "UnlessNegative" or has_negative):
                return place
        return len(self.criteria)

    def grows(self, *, has_negative: bool) -> bool:
        """Whether a set with one victim more never costs less, all criteria taken together."""
        first = self.bounding(has_negative=has_negative)
        if first == len(self.criteria):
            return True
        is_last_start = self.criteria[first].growth == "BesideHighestPriority"
        if not is_last_start or _HIGHEST_PRIORITY not in self.criteria[:first]:
            return False
        return VictimCost(self.criteria[first + 1 :]).grows(has_negative=has_negative)


UPSTREAM_COST = VictimCost(UPSTREAM)
"""As kube-scheduler compares victims."""
