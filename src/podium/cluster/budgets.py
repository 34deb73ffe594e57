"""Disruption budgets, for preemption and for evictions: the pods that they cover and the disruptions left.

Source: pkg/scheduler/framework/preemption/preemption.go (filterPodsWithPDBViolation);
pkg/registry/core/pod/storage/eviction.go (getPodDisruptionBudgets); controlled-rescheduling.md, Disruption budget, for
rates.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from msgspec import Struct

from podium.api.budget_limits import full_ns, rate_of
from podium.api.disruption_policy import Rate
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import Selector, compile_label_selector
from podium.cluster.arrays import BoundedLog
from podium.cluster.pod_classes import PodClass
from podium.cluster.selector_index import NAMESPACE, QueryIndex, RequiredKeys, selector_keys

_LOG_LIMIT = 512


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget; ``disrupted`` are pods that its status has already counted, ``tokens`` are left of its rate, if any.

    The other fields are for evictions and do not count for equality. ``bucket`` is that of the rate. ``with_all_up`` is
    how many disruptions might be allowed if all pods were healthy. ``is_behind``: the budget's controller has not
    processed its present form yet, and until then no pod is evicted. ``spares_unready``: pods that are not ready do not
    count.
    """

    namespace: str
    name: str
    selector: Selector
    disruptions_allowed: int
    disrupted: frozenset[str]
    tokens: int | None = None
    bucket: Bucket | None = field(default=None, compare=False)
    with_all_up: int = field(default=0, compare=False)
    is_behind: bool = field(default=False, compare=False)
    spares_unready: bool = field(default=False, compare=False)

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


class Bucket(Struct, frozen=True):
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
    """All budgets as of a point in time.

    ``requires_all``: a pod that several of them count may be evicted if all allow it; otherwise it never is.
    """

    def __init__(self) -> None:
        self.requires_all = False
        self.objects: dict[str, PodDisruptionBudget] = {}
        """The budgets with their status, by key."""
        # By namespace and name; and the names of those of a namespace by the labels that they require.
        self._budgets: dict[str, dict[str, Budget]] = {}
        self._requiring: dict[str, QueryIndex[str]] = {}
        # By namespace and class, the sorted names of the budgets that count the class.
        self._over = defaultdict[str, WeakKeyDictionary[PodClass, list[str]]](WeakKeyDictionary)
        self._now = 0
        self._next_change_ns: int | None = None
        self.changes: BoundedLog[Budget] = BoundedLog(_LOG_LIMIT)
        """The budgets whose protection changed, each before and after."""

    def __len__(self) -> int:
        return sum(map(len, self._budgets.values()))

    def put(self, budget: PodDisruptionBudget) -> bool:
        """Add or replace a budget; return whether its selector or the disruptions that it allows change."""
        before, read = self.find(budget.key), _read(budget, self._now)
        self.objects[budget.key] = budget
        self._set(read)
        self._expect_change(read.bucket)
        if before is None:
            return True
        return (before.selector, before.disruptions_allowed) != (read.selector, read.disruptions_allowed)

    def remove(self, key: str) -> None:
        self.objects.pop(key, None)
        namespace, _, name = key.partition("/")
        in_namespace = self._budgets.get(namespace, {})
        before = in_namespace.pop(name, None)
        if before is None:
            return
        for names in self._over.get(namespace, {}).values():
            if name in names:
                names.remove(name)
        self._requiring[namespace].remove(name)
        if not in_namespace:
            del self._budgets[namespace], self._requiring[namespace]
            self._over.pop(namespace, None)
        self.changes.append(before)

    def pass_time(self, now: int) -> None:
        """Set the time as of which the tokens of rates are counted."""
        if now == self._now:
            return
        is_back, self._now = now < self._now, now
        if self._next_change_ns is None or (now < self._next_change_ns and not is_back):
            return
        self._next_change_ns = None
        for budget in self.all():
            if budget.bucket is not None:
                self._set(replace(budget, tokens=budget.bucket.tokens(now)))
                self._expect_change(budget.bucket)

    def next_token_ns(self, keys: Iterable[str]) -> int | None:
        """Return when the next token of the rates of some budgets comes back; None if none is missing."""
        buckets = (budget.bucket for budget in map(self.find, keys) if budget is not None)
        times = (bucket.next_change_ns(self._now) for bucket in buckets if bucket is not None)
        return min((time_ns for time_ns in times if time_ns is not None), default=None)

    def next_free_ns(self, now: int) -> int | None:
        """Return when the first exhausted rate allows a disruption again; None if no rate is exhausted."""
        buckets = (budget.bucket for budgets in self._budgets.values() for budget in budgets.values())
        times = (bucket.rate.next_ns(bucket.full_ns, now) for bucket in buckets if bucket is not None)
        return min((time_ns for time_ns in times if time_ns > now), default=None)

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
        names_of = self._over[pod_class.namespace]
        names = names_of.get(pod_class)
        if names is None:
            found = self._requiring[pod_class.namespace].candidates(pod_class.labels.items())
            names = names_of[pod_class] = sorted(name for name in found if here[name].counts(pod_class))
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
        in_namespace[budget.name] = budget
        if before == budget:
            return
        if before is None or before.selector != budget.selector:
            self._requiring.setdefault(budget.namespace, QueryIndex()).put(budget.name, selector_keys(budget.selector))
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


def _read(budget: PodDisruptionBudget, now: int) -> Budget:
    """Return a budget with its tokens at ``now``. As upstream, a selector that does not parse covers nothing."""
    meta, status, bucket = budget.metadata, budget.status, _bucket_of(budget)
    is_behind = status.observed_generation < meta.generation
    condition = status.condition("DisruptionAllowed")
    is_computed = not is_behind and (condition is None or condition.reason != "SyncFailed")
    return Budget(
        meta.namespace,
        meta.name,
        compile_label_selector(budget.spec.selector),
        status.disruptions_allowed,
        frozenset(status.disrupted_pods),
        None if bucket is None else bucket.tokens(now),
        bucket,
        with_all_up=max(status.disruptions_allowed, status.expected_pods - status.desired_healthy),
        is_behind=is_behind,
        spares_unready=budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
        or (is_computed and status.current_healthy >= status.desired_healthy > 0),
    )


def _bucket_of(budget: PodDisruptionBudget) -> Bucket | None:
    """Return the bucket of a budget's rate; None without a valid rate."""
    try:
        rate = rate_of(budget)
        return None if rate is None else Bucket(rate, full_ns(budget, rate))
    except ValueError:
        # The API server then refuses evictions; the budget's status says why and allows no disruption either.
        return None
