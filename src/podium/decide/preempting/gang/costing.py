"""What sets of victims on any nodes cost a gang's plan: kube-scheduler's criteria, or those that are stated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.decide.preempting.costs.facts import Facts
from podium.decide.preempting.costs.victim_cost import UPSTREAM_COST, VictimCost
from podium.decide.preempting.costs.victim_sets import VictimSets
from podium.decide.preempting.victims import with_budgets
from podium.framework.handle import Handle

# What these say of a set is no more with another victim that is no dearer than the dearest.
_LARGEST = frozenset(("HighestPriority", "GracePeriod", "NamespaceShare"))


class Costing:
    """Costs of sets of victims in the cluster as it is when they are asked for; each set's most important pod first."""

    def __init__(self, handle: Handle, stated: VictimCost | None, *, requires_budgets: bool = False) -> None:
        self._handle = handle
        self._cost = UPSTREAM_COST if stated is None else stated
        self.stated = stated
        self.requires_budgets = requires_budgets

    @property
    def words(self) -> tuple[str, ...]:
        """What each criterion says of the cheapest."""
        return self._cost.words

    @property
    def are_largest(self) -> Bools:
        """``[criteria]``: which are the largest of the victims' numbers, so that another as large costs nothing."""
        return np.array([criterion.name in _LARGEST for criterion in self._cost.criteria], dtype=np.bool_)

    @property
    def are_sums(self) -> Bools:
        """``[criteria]``: which are sums of the victims' numbers."""
        return np.array([criterion.adds for criterion in self._cost.criteria], dtype=np.bool_)

    def grows(self, pods: Sequence[PodRecord]) -> bool:
        """Whether a set of some of the pods with one more never costs less."""
        return self._cost.grows(has_negative=any(pod.priority < 0 for pod in pods))

    def of(self, sets: Sequence[Sequence[PodRecord]]) -> tuple[Int64s, Int64s]:
        """``[criteria, sets]`` costs, and ``[sets]`` violations of budgets, of sets that are not empty."""
        if not sets:
            return np.zeros((len(self.words), 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
        slots = np.array([pod.slot for victims in sets for pod in victims], dtype=np.int64)
        starts = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        violating = with_budgets(self._handle.cluster, np.arange(len(sets)), starts, slots).violating
        violations: Int64s = np.add.reduceat(violating.astype(np.int64), starts[:-1])
        return self._cost.columns(VictimSets(Facts(self._handle), starts, slots, violations)), violations
