"""Disruption budgets as preemption uses them: the pods that they cover and the disruptions left.

Source: pkg/scheduler/framework/preemption/preemption.go (filterPodsWithPDBViolation); controlled-rescheduling.md,
Disruption budget, for rates.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from podium.api.budget_limits import full_ns, rate_of
from podium.api.disruption_policy import Rate
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import NOTHING, Selector, compile_label_selector
from podium.cluster.arrays import BoundedLog
from podium.cluster.pod_classes import PodClass
from podium.cluster.selector_index import NAMESPACE, RequiredKeys, selector_keys

_LOG_LIMIT = 512


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget; ``disrupted`` are pods that its status has already counted, ``tokens`` are left of its rate, if any."""

    namespace: str
    name: str
    selector: Selector
    disruptions_allowed: int
    disrupted: frozenset[str]
    tokens: int | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def covers(self, pod_class: PodClass) -> bool:
        """Return whether the budget protects pods of the class. Empty labels and empty selectors match nothing."""
        return bool(pod_class.labels) and bool(self.selector.requirements) and self.counts(pod_class)

    def counts(self, pod_class: PodClass) -> bool:
        """Return whether the eviction API and the budget's rate count disruptions of the class.

        Unlike in `covers`, the empty selector matches all pods of the namespace.
        """
        return pod_class.namespace == self.namespace and self.selector.matches(pod_class.labels)

    def allows_more_than(self, before: Budget) -> bool:
        """Return whether some disruptions may be allowed that ``before``, an earlier reading, did not allow."""
        return (
            self.disruptions_allowed > before.disruptions_allowed
            or self.selector != before.selector
            or not self.disrupted <= before.disrupted
            or (before.tokens is not None and (self.tokens is None or self.tokens > before.tokens))
        )

    @property
    def required_keys(self) -> RequiredKeys:
        """Return the index keys that a pod class needs in order to be counted."""
        return [*selector_keys(self.selector), [(NAMESPACE, self.namespace)]]


@dataclass(frozen=True, slots=True)
class Bucket:
    """A budget's rate, and when all of its tokens are back."""

    rate: Rate
    full_ns: int

    def tokens(self, now: int) -> int:
        return max(0, self.rate.tokens(self.full_ns, now))

    def next_change_ns(self, now: int) -> int | None:
        """Return when the next token comes back; None if none is missing."""
        missing = self.rate.count - self.rate.tokens(self.full_ns, now)
        return self.full_ns - (missing - 1) * self.rate.interval_ns if missing > 0 else None


class Budgets:
    """All budgets as of a point in time."""

    def __init__(self) -> None:
        # By namespace and name.
        self._budgets: dict[str, dict[str, Budget]] = {}
        # By namespace and class, the sorted names of the budgets that count the class.
        self._over: dict[str, WeakKeyDictionary[PodClass, list[str]]] = {}
        self._buckets: dict[str, Bucket] = {}
        self._now = 0
        self._next_change_ns: int | None = None
        self.changes: BoundedLog[Budget] = BoundedLog(_LOG_LIMIT)
        """The budgets whose protection changed, each before and after."""

    def __len__(self) -> int:
        return sum(map(len, self._budgets.values()))

    def put(self, budget: PodDisruptionBudget) -> None:
        """Add or replace a budget. As upstream, a selector that does not parse covers nothing."""
        bucket = bucket_of(budget)
        if bucket is None:
            self._buckets.pop(budget.key, None)
        else:
            self._buckets[budget.key] = bucket
        self._set(
            Budget(
                namespace=budget.metadata.namespace,
                name=budget.metadata.name,
                selector=compile_label_selector(budget.spec.selector) if budget.spec.selector else NOTHING,
                disruptions_allowed=budget.status.disruptions_allowed,
                disrupted=frozenset(budget.status.disrupted_pods),
                tokens=None if bucket is None else bucket.tokens(self._now),
            )
        )
        self._expect_change(bucket)

    def remove(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        in_namespace = self._budgets.get(namespace, {})
        before = in_namespace.pop(name, None)
        if before is None:
            return
        for names in self._over.get(namespace, {}).values():
            if name in names:
                names.remove(name)
        if not in_namespace:
            del self._budgets[namespace]
            self._over.pop(namespace, None)
        self._buckets.pop(key, None)
        self.changes.append(before)

    def pass_time(self, now: int) -> None:
        """Set the time as of which the tokens of rates are counted."""
        if now == self._now:
            return
        is_back, self._now = now < self._now, now
        if self._next_change_ns is None or (now < self._next_change_ns and not is_back):
            return
        self._next_change_ns = None
        for key, bucket in sorted(self._buckets.items()):
            namespace, _, name = key.partition("/")
            budget = self._budgets[namespace][name]
            self._set(replace(budget, tokens=bucket.tokens(now)))
            self._expect_change(bucket)

    def next_token_ns(self, keys: Iterable[str]) -> int | None:
        """Return when the next token of the rates of some budgets comes back; None if none is missing."""
        buckets = (self._buckets[key] for key in keys if key in self._buckets)
        times = (bucket.next_change_ns(self._now) for bucket in buckets)
        return min((time_ns for time_ns in times if time_ns is not None), default=None)

    def find(self, key: str) -> Budget | None:
        namespace, _, name = key.partition("/")
        return self._budgets.get(namespace, {}).get(name)

    def all(self) -> list[Budget]:
        """Return the budgets, by key."""
        found = (budget for in_namespace in self._budgets.values() for budget in in_namespace.values())
        return sorted(found, key=lambda budget: budget.key)

    def over(self, pod_class: PodClass) -> Iterator[Budget]:
        """Return the budgets that count the disruption of pods of a class, by name."""
        here = self._budgets.get(pod_class.namespace)
        if here is None:
            return iter(())
        asked = self._over.get(pod_class.namespace)
        if asked is None:
            asked = self._over[pod_class.namespace] = WeakKeyDictionary()
        names = asked.get(pod_class)
        if names is None:
            names = asked[pod_class] = sorted(name for name, budget in here.items() if budget.counts(pod_class))
        return map(here.__getitem__, names)

    def counts(self, pod_class: PodClass) -> bool:
        """Return whether some budget counts the disruption of a pod of the class."""
        return next(self.over(pod_class), None) is not None

    def covering(self, pod_classes: Iterable[PodClass]) -> list[Budget]:
        """Return the budgets that cover at least one of the classes, by key."""
        found = {budget.key: budget for each in pod_classes for budget in self.over(each) if budget.covers(each)}
        return [found[key] for key in sorted(found)]

    def _set(self, budget: Budget) -> None:
        in_namespace = self._budgets.setdefault(budget.namespace, {})
        before = in_namespace.get(budget.name)
        if before == budget:
            return
        in_namespace[budget.name] = budget
        if before is None or before.selector != budget.selector:
            for pod_class, names in self._over.get(budget.namespace, {}).items():
                is_known = budget.name in names
                if budget.counts(pod_class) and not is_known:
                    insort(names, budget.name)
                elif is_known and not budget.counts(pod_class):
                    names.remove(budget.name)
            if before is not None:
                self.changes.append(before)
        self.changes.append(budget)

    def _expect_change(self, bucket: Bucket | None) -> None:
        """Advance the time of the next change to when a token of the bucket comes back."""
        time_ns = None if bucket is None else bucket.next_change_ns(self._now)
        if time_ns is not None and (self._next_change_ns is None or time_ns < self._next_change_ns):
            self._next_change_ns = time_ns


def bucket_of(budget: PodDisruptionBudget) -> Bucket | None:
    """Return the bucket of a budget's rate; None without a valid rate."""
    try:
        rate = rate_of(budget)
        return None if rate is None else Bucket(rate, full_ns(budget, rate))
    except ValueError:
        # The API server then refuses evictions; the budget's status says why and allows no disruption either.
        return None
