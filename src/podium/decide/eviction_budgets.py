"""Disruption budgets as the eviction API counts them, to see beforehand which evictions it will grant.

Source: pkg/registry/core/pod/storage/eviction.go (getPodDisruptionBudgets). Preemption reads selectors otherwise: see
`cluster.budgets`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from podium.api.budget_rate import full_ns, rate_of
from podium.api.disruption_rate import Rate
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import Selector, compile_label_selector
from podium.cluster.pods import PodRecord


@dataclass(frozen=True, slots=True)
class EvictionBudget:
    """How many of the selected pods may be evicted now.

    Two that agree in that are equal, whatever else they say. ``with_all_up`` is how many might be if all its pods were
    healthy. ``is_behind``: its controller has not seen it as it is yet, and until then nobody is evicted.
    ``spares_unready``: pods that are not ready may go without being counted. ``full_ns`` is when the bucket of its
    ``rate`` is full again.
    """

    key: str
    selector: Selector
    allowed: int
    with_all_up: int = field(default=0, compare=False)
    is_behind: bool = field(default=False, compare=False)
    spares_unready: bool = field(default=False, compare=False)
    rate: Rate | None = field(default=None, compare=False)
    full_ns: int = field(default=0, compare=False)

    def tokens(self, now: int) -> int | None:
        """How many disruptions its rate leaves at a time; None without one."""
        return None if self.rate is None else max(0, self.rate.tokens(self.full_ns, now))


class EvictionBudgets:
    """All budgets, by namespace. ``requires_all``: a pod with several goes if all allow it; otherwise never."""

    def __init__(self) -> None:
        self.requires_all = False
        self._budgets: dict[str, dict[str, EvictionBudget]] = {}

    def put(self, budget: PodDisruptionBudget) -> bool:
        """Add or replace a budget; whether that makes a difference. The empty selector covers all, none nothing."""
        meta = budget.metadata
        read = _read(budget)
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

    def next_token_ns(self, now: int) -> int | None:
        """When a rate that is used up lets somebody go again, the first of all; None where none is."""
        found = (budget for budgets in self._budgets.values() for budget in budgets.values())
        rates = ((budget.rate, budget.full_ns) for budget in found)
        times = (rate.next_ns(full_ns, now) for rate, full_ns in rates if rate is not None)
        return min((time for time in times if time > now), default=None)

    def covering(self, pod: PodRecord) -> list[EvictionBudget]:
        """The budgets over a pod, by name."""
        budgets = self._budgets.get(pod.namespace, {})
        return [budgets[name] for name in sorted(budgets) if budgets[name].selector.matches(pod.labels)]


def _read(budget: PodDisruptionBudget) -> EvictionBudget:
    status, allowed = budget.status, budget.status.disruptions_allowed
    rate, bucket_full_ns = _bucket(budget)
    is_behind = status.observed_generation < budget.metadata.generation
    condition = status.condition("DisruptionAllowed")
    is_computed = not is_behind and (condition is None or condition.reason != "SyncFailed")
    return EvictionBudget(
        key=budget.key,
        selector=compile_label_selector(budget.spec.selector),
        allowed=allowed,
        with_all_up=max(allowed, status.expected_pods - status.desired_healthy),
        is_behind=is_behind,
        spares_unready=budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
        or (is_computed and status.current_healthy >= status.desired_healthy > 0),
        rate=rate,
        full_ns=bucket_full_ns,
    )


def _bucket(budget: PodDisruptionBudget) -> tuple[Rate | None, int]:
    """A budget's rate, and when its bucket is full; one that cannot be read lets nobody go, as its status says."""
    try:
        rate = rate_of(budget)
        return rate, 0 if rate is None else full_ns(budget, rate)
    except ValueError:
        return None, 0


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
