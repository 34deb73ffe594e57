"""What sets of victims on any nodes cost a gang's plan: kube-scheduler's criteria, or those that are stated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.decide.preempting.costs.facts import Facts
from podium.decide.preempting.costs.upstream import costs_of_lists
from podium.decide.preempting.costs.victim_cost import VictimCost
from podium.decide.preempting.costs.victim_sets import VictimSets
from podium.decide.preempting.trial_table import CRITERIA
from podium.decide.preempting.victims import with_budgets
from podium.framework.group_plugin import GroupHandle

# Of these another victim adds nothing that is no larger than the largest, and those its number.
_LARGEST = frozenset((CRITERIA[1], "HighestPriority", "GracePeriod"))
_SUMS = frozenset((CRITERIA[0], CRITERIA[2], CRITERIA[3], "BudgetViolations", "SumOfPriorities", "Victims", "WorkLost"))


class Costing:
    """Costs of sets of victims in the cluster as it is when they are asked for; each set's most important pod first."""

    def __init__(self, handle: GroupHandle, stated: VictimCost | None, *, requires_budgets: bool = False) -> None:
        self._handle = handle
        self.stated = stated
        self.requires_budgets = requires_budgets

    @property
    def words(self) -> tuple[str, ...]:
        """What each criterion says of the cheapest."""
        return CRITERIA if self.stated is None else tuple(each.words for each in self.stated.criteria)

    @property
    def are_largest(self) -> Bools:
        """``[criteria]``: which are the largest of the victims' numbers, so that another as large costs nothing."""
        return np.array([name in _LARGEST for name in self._names], dtype=np.bool_)

    @property
    def are_sums(self) -> Bools:
        """``[criteria]``: which are sums of the victims' numbers."""
        return np.array([name in _SUMS for name in self._names], dtype=np.bool_)

    def of(self, sets: Sequence[Sequence[PodRecord]]) -> tuple[Int64s, Int64s]:
        """``[criteria, sets]`` costs, and ``[sets]`` violations of budgets, of sets that are not empty."""
        slots = np.array([pod.slot for victims in sets for pod in victims], dtype=np.int64)
        starts = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        return self.of_lists(starts, slots)

    def of_lists(self, starts: Int64s, slots: Int64s) -> tuple[Int64s, Int64s]:
        """The same of ``slots[starts[i]:starts[i + 1]]``."""
        cluster, size = self._handle.cluster, len(starts) - 1
        if not size:
            return np.zeros((len(self.words), 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
        violating = with_budgets(cluster, np.arange(size), starts, slots).violating
        violations: Int64s = np.add.reduceat(violating.astype(np.int64), starts[:-1])
        if self.stated is None:
            return costs_of_lists(cluster, starts, slots, violating), violations
        return self.stated.columns(VictimSets(Facts(self._handle), starts, slots, violations)), violations

    @property
    def _names(self) -> Sequence[str]:
        return CRITERIA if self.stated is None else [each.name for each in self.stated.criteria]
