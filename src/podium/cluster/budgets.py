"""Disruption budgets as preemption sees them: whom they cover, and how much is left.

Source: pkg/scheduler/framework/preemption/preemption.go (filterPodsWithPDBViolation); controlled-rescheduling.md,
Disruption budget, for their rates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from podium.api.budget_rate import full_ns, rate_of
from podium.api.disruption_rate import Rate
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import NOTHING, Selector, compile_label_selector
from podium.cluster.change_log import BoundedLog
from podium.cluster.marks import NAMESPACE, Needs, selector_needs
from podium.cluster.pod_class import PodClass

_LOG_LIMIT = 512


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget. ``disrupted`` names pods whose disruption it has accounted for already.

    ``tokens`` is what its rate has left, None without a rate.
    """

    namespace: str
    name: str
    selector: Selector
    disruptions_allowed: int
    disrupted: frozenset[str]
    tokens: int | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def covers(self, pod_class: PodClass) -> bool:
        """Whether the budget protects pods of the class. Pods without labels and empty selectors match nothing."""
        return bool(pod_class.labels) and bool(self.selector.requirements) and self.counts(pod_class)

    def counts(self, pod_class: PodClass) -> bool:
        """Whether the budget counts the disruption of pods of the class, as the eviction API and its rate do.

        There the empty selector covers all pods of the namespace.
        """
        return pod_class.namespace == self.namespace and self.selector.matches(pod_class.labels)

    @property
    def needs(self) -> Needs:
        """The marks without which no pod class is counted."""
        return [*selector_needs(self.selector), [(NAMESPACE, self.namespace)]]


@dataclass(frozen=True, slots=True)
class _Bucket:
    """A budget's rate, and when all of its tokens are back."""

    rate: Rate
    full_ns: int

    def tokens(self, now: int) -> int:
        return max(0, self.rate.tokens(self.full_ns, now))

    def next_change_ns(self, now: int) -> int | None:
        """When the next token is back; None where none is missing."""
        missing = self.rate.count - self.rate.tokens(self.full_ns, now)
        return self.full_ns - (missing - 1) * self.rate.interval_ns if missing > 0 else None


class Budgets:
    """All budgets, as of some time. ``position`` moves whenever one of them changes in what it protects.

    Who keeps an answer remembers the position, and asks what has changed `since`.
    """

    def __init__(self) -> None:
        # By namespace, and name.
        self._budgets: dict[str, dict[str, Budget]] = {}
        # By namespace, and class: which of them count it.
        self._over: dict[str, WeakKeyDictionary[PodClass, set[str]]] = {}
        self._buckets: dict[str, _Bucket] = {}
        self._now = 0
        self._next_change_ns: int | None = None
        self._changes: BoundedLog[Budget] = BoundedLog(_LOG_LIMIT)

    def __len__(self) -> int:
        return sum(map(len, self._budgets.values()))

    @property
    def position(self) -> int:
        """The position after the newest change."""
        return self._changes.position

    def since(self, position: int) -> list[Budget] | None:
        """The budgets that changed after ``position``, as they were before and as they are now.

        None where that is too long ago to be known.
        """
        return self._changes.entries_since(position)

    def put(self, budget: PodDisruptionBudget) -> None:
        """Add or replace a budget. A selector that does not parse covers nothing, as upstream decides."""
        bucket = _bucket(budget)
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
        """Forget a budget."""
        namespace, _, name = key.partition("/")
        in_namespace = self._budgets.get(namespace, {})
        before = in_namespace.pop(name, None)
        if before is None:
            return
        for names in self._over.get(namespace, {}).values():
            names.discard(name)
        if not in_namespace:
            del self._budgets[namespace]
            self._over.pop(namespace, None)
        self._buckets.pop(key, None)
        self._changes.append(before)

    def pass_time(self, now: int) -> None:
        """What the rates have left is as of ``now`` from here on."""
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

    def all(self) -> list[Budget]:
        """The budgets, by key."""
        return sorted(
            (budget for in_namespace in self._budgets.values() for budget in in_namespace.values()),
            key=lambda budget: budget.key,
        )

    def over(self, pod_class: PodClass) -> Iterator[Budget]:
        """The budgets that count the disruption of pods of a class, by name."""
        in_namespace = self._budgets.get(pod_class.namespace)
        return (
            iter(())
            if in_namespace is None
            else (in_namespace[name] for name in sorted(self._names_over(pod_class, in_namespace)))
        )

    def counts(self, pod_class: PodClass) -> bool:
        """Whether some budget counts the disruption of a pod of the class."""
        return next(self.over(pod_class), None) is not None

    def covering(self, pod_classes: Iterable[PodClass]) -> list[Budget]:
        """The budgets that cover at least one of the classes, by key."""
        found = {budget.key: budget for each in pod_classes for budget in self.over(each) if budget.covers(each)}
        return [found[key] for key in sorted(found)]

    def _names_over(self, pod_class: PodClass, in_namespace: Mapping[str, Budget]) -> set[str]:
        """The names of the budgets that count a class; each class is asked about once."""
        asked = self._over.setdefault(pod_class.namespace, WeakKeyDictionary())
        known = asked.get(pod_class)
        if known is None:
            known = asked[pod_class] = {name for name, budget in in_namespace.items() if budget.counts(pod_class)}
        return known

    def _set(self, budget: Budget) -> None:
        in_namespace = self._budgets.setdefault(budget.namespace, {})
        before = in_namespace.get(budget.name)
        if before == budget:
            return
        in_namespace[budget.name] = budget
        if before is None or before.selector != budget.selector:
            for pod_class, names in self._over.get(budget.namespace, {}).items():
                (names.add if budget.counts(pod_class) else names.discard)(budget.name)
            if before is not None:
                self._changes.append(before)
        self._changes.append(budget)

    def _expect_change(self, bucket: _Bucket | None) -> None:
        """A token of a rate is to come back."""
        time_ns = None if bucket is None else bucket.next_change_ns(self._now)
        if time_ns is not None and (self._next_change_ns is None or time_ns < self._next_change_ns):
            self._next_change_ns = time_ns


def _bucket(budget: PodDisruptionBudget) -> _Bucket | None:
    """The bucket of a budget's rate; None without a rate that can be read."""
    try:
        rate = rate_of(budget)
        return None if rate is None else _Bucket(rate, full_ns(budget, rate))
    except ValueError:
        # The API server allows no eviction then; the budget's status says why, and allows no disruption either.
        return None
