"""Disruption budgets as the eviction API counts them, to see beforehand which evictions it will grant.

Source: pkg/registry/core/pod/storage/eviction.go (getPodDisruptionBudgets). Preemption reads selectors otherwise: see
`cluster.budgets`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import Selector, compile_label_selector
from podium.cluster.pods import PodRecord


@dataclass(frozen=True, slots=True)
class EvictionBudget:
    """How many of the selected pods may be evicted now."""

    key: str
    selector: Selector
    allowed: int


class EvictionBudgets:
    """All budgets, by namespace. ``requires_all``: a pod with several goes if all allow it; otherwise never."""

    def __init__(self) -> None:
        self.requires_all = False
        self._budgets: dict[str, dict[str, EvictionBudget]] = {}

    def put(self, budget: PodDisruptionBudget) -> bool:
        """Add or replace a budget; whether that makes a difference. The empty selector covers all, none nothing."""
        meta = budget.metadata
        read = EvictionBudget(
            budget.key, compile_label_selector(budget.spec.selector), budget.status.disruptions_allowed
        )
        in_namespace = self._budgets.setdefault(meta.namespace, {})
        changed = in_namespace.get(meta.name) != read
        in_namespace[meta.name] = read
        return changed

    def remove(self, budget: PodDisruptionBudget) -> None:
        """Forget a budget."""
        meta = budget.metadata
        in_namespace = self._budgets.get(meta.namespace, {})
        in_namespace.pop(meta.name, None)
        if not in_namespace:
            self._budgets.pop(meta.namespace, None)

    def covering(self, pod: PodRecord) -> list[EvictionBudget]:
        """The budgets over a pod, by name."""
        budgets = self._budgets.get(pod.namespace, {})
        return [budgets[name] for name in sorted(budgets) if budgets[name].selector.matches(pod.labels)]


class Allowance:
    """What the budgets allow, less what is planned already."""

    def __init__(self, budgets: EvictionBudgets) -> None:
        self._budgets = budgets
        self._planned: Counter[str] = Counter()

    def take(self, pods: Iterable[PodRecord]) -> str:
        """Plan to evict all of the pods; why that would not be granted, and nothing is planned then, or ""."""
        wanted: Counter[str] = Counter()
        for pod in pods:
            covering = self._budgets.covering(pod)
            if len(covering) > 1 and not self._budgets.requires_all:
                return f"{pod.key} has several disruption budgets: {', '.join(budget.key for budget in covering)}"
            for budget in covering:
                wanted[budget.key] += 1
                if self._planned[budget.key] + wanted[budget.key] > budget.allowed:
                    return f"{pod.key} may not be evicted: the disruption budget {budget.key} is used up"
        self._planned += wanted
        return ""
