"""How many evictions disruption budgets leave to a rescheduler, less what it leaves to others.

"Non-aggressive means it ... will try to leave plenty of buffer in disruption budgets."

Source: controlled-rescheduling.md, Rescheduler; pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import ceil

from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.decide.eviction_budgets import EvictionBudget
from podium.decide.rescheduling.standing import Standing
from podium.framework.rescheduling.settings import ReschedulerSettings


class BudgetRoom:
    """What the budgets, their rates and the component's cap leave at ``now``, less what is planned already."""

    def __init__(self, standing: Standing, settings: ReschedulerSettings, now: int) -> None:
        self._budgets = standing.budgets
        self._settings = settings
        self._now = now
        self._cap_left = standing.component_may_evict
        self._planned: Counter[str] = Counter()
        self._planned_in_all = 0
        self._over: dict[PodClass, list[EvictionBudget]] = {}

    def is_protected(self, pod: PodRecord) -> bool:
        """Whether some budget covers the pod."""
        return bool(self._covering(pod))

    def why(self, pods: Iterable[PodRecord]) -> str:
        """Why some pods may not be evicted together; "" if they may."""
        wanted: Counter[str] = Counter()
        counted = 0
        for pod in pods:
            covering = self._covering(pod)
            if len(covering) > 1 and not self._budgets.requires_all:
                return f"{pod.key} has several disruption budgets: {', '.join(budget.key for budget in covering)}"
            asked = [budget for budget in covering if _asks(budget, pod)]
            counted += bool(asked)
            wanted.update(budget.key for budget in asked)
            for budget in asked:
                why = self._why_not(budget, self._planned[budget.key] + wanted[budget.key])
                if why:
                    return f"{pod.key} may not be evicted: the disruption budget {budget.key} {why}"
        if self._cap_left is not None and self._planned_in_all + counted > self._cap_left:
            return f"the cap on how often the rescheduler may disrupt pods that have a budget leaves {self._cap_left}"
        return ""

    def why_never(self, pod: PodRecord) -> str:
        """Why the budgets over a pod would not let it go even with all pods up; "" if they would."""
        for budget in self._covering(pod):
            if _asks(budget, pod) and budget.with_all_up - self.reserve(budget) < 1:
                allowed = max(budget.with_all_up, 0)
                return f"{pod.key} is never let go: {budget.key} allows {allowed} at most, less what is left to others"
        return ""

    def take(self, pods: Iterable[PodRecord]) -> None:
        """Plan to evict some pods."""
        for pod in pods:
            asked = [budget.key for budget in self._covering(pod) if _asks(budget, pod)]
            self._planned.update(asked)
            self._planned_in_all += bool(asked)

    def reserve(self, budget: EvictionBudget) -> int:
        """How many of the disruptions that a budget allows are left to others."""
        settings = self._settings
        return max(settings.budget_reserve, ceil(settings.budget_reserve_share * budget.with_all_up))

    def _covering(self, pod: PodRecord) -> list[EvictionBudget]:
        """The budgets over a pod, by name; each class is asked about once."""
        known = self._over.get(pod.pod_class)
        if known is None:
            known = self._over[pod.pod_class] = self._budgets.covering(pod)
        return known

    def _why_not(self, budget: EvictionBudget, number: int) -> str:
        """What speaks against so many evictions in all that count for a budget."""
        if budget.is_behind:
            return "is still being processed"
        reserve, tokens = self.reserve(budget), budget.tokens(self._now)
        if number > budget.allowed - reserve:
            kept = f", of which {reserve} are left to others" if reserve else ""
            return f"allows {max(budget.allowed, 0)}{kept}"
        if tokens is not None and number > tokens:
            return f"has a rate of {budget.rate}, which leaves {tokens}"
        return ""


def _asks(budget: EvictionBudget, pod: PodRecord) -> bool:
    """Whether the eviction of the pod counts for a budget over it."""
    return pod.ready or not budget.spares_unready
