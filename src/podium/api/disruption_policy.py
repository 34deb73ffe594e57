"""The administrator's disruption rules of a cluster: DisruptionPolicy (podium.dev/v1alpha1).

In the design for controlled rescheduling the administrator orders the priorities, gives workloads default budgets,
limits the disruptions of each component, and bounds the avoid lists. One object, named `default`, contains all of that;
a cluster without it has the defaults given here. Rate limits on disruptions are token buckets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

from msgspec import Struct

from podium.api import errors, resource_requests, selectors
from podium.api.meta import APIStruct, Int32, Kubernetes, Raw
from podium.api.times import format_duration, format_exact_time, parse_duration, parse_time

Entry = TypeVar("Entry", "DefaultBudget", "BudgetBound")

POLICY_NAME = "default"
"""The name of a cluster's only DisruptionPolicy."""

SCHEDULER = "scheduler"
"""The component whose cap counts preemptions."""


class DefaultBudget(APIStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The budget of workloads without one whose pods have at least this priority; None means any priority."""

    min_priority: Int32 | None = None
    max_unavailable: Int32 | str | None = None
    min_available: Int32 | str | None = None


class BudgetBound(APIStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The maximum strictness of budgets of pods of at least this priority; None means any priority.

    With all pods healthy, so many disruptions at a time must be allowed (a number, or a percentage of the expected
    pods). If a budget has a rate, its tokens must return at least as quickly as with this one.
    """

    min_priority: Int32 | None = None
    min_disruptions: Int32 | str | None = None
    min_rate: str | None = None


class PriorityRule(APIStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The PriorityClass of new pods that meet all conditions; an omitted condition matches any pod.

    `when_stated` is the treatment of a pod that states another class, or a priority: `Keep` leaves it unchanged,
    `Replace` assigns the rule's class, `Refuse` refuses the pod.
    """

    name: str
    priority_class_name: str
    pod_selector: selectors.LabelSelector | None = None
    namespace_selector: selectors.LabelSelector | None = None
    qos_classes: tuple[resource_requests.QOSClass, ...] = ()
    when_stated: Literal["Keep", "Replace", "Refuse"] = "Keep"

    @property
    def class_name(self) -> str:
        """The name of the class, in lower case like the names of `priorities`."""
        return self.priority_class_name.strip().lower()

    @property
    def is_unconditional(self) -> bool:
        given = [one for one in (self.pod_selector, self.namespace_selector) if one is not None]
        return not self.qos_classes and not any(one.match_labels or one.match_expressions for one in given)


class AvoidLists(APIStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The maximum number of controllers on a node's avoid list, and the lifetime of the entries."""

    max_entries: Int32 = 16
    expire_after: str = "1h"

    @property
    def expire_after_ns(self) -> int:
        """The lifetime of an entry."""
        return parse_duration(self.expire_after)


class DisruptionPolicySpec(APIStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cluster-wide rules.

    `priorities` are the names of priority classes, highest first: `Critical > Normal`, or a list. `several_budgets`
    says whether a pod with several disruption budgets cannot be evicted, or needs the permission of all.
    `default_budgets` and `budget_bounds` are in descending order of priority. The first of the `priority_rules` that
    matches a new pod decides about its class.
    """

    priorities: str | tuple[str, ...] = ()
    priority_rules: tuple[PriorityRule, ...] = ()
    several_budgets: Literal["Refuse", "RequireAll"] = "Refuse"
    default_budgets: tuple[DefaultBudget, ...] = ()
    budget_bounds: tuple[BudgetBound, ...] = ()
    caps: tuple[Cap, ...] = ()
    avoid_lists: AvoidLists = AvoidLists()

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the priority classes, highest first.

        They are the names of `priorities` in lower case, since Kubernetes requires it for object names.
        """
        given = self.priorities
        if isinstance(given, str):
            given = tuple(given.split(">")) if given.strip() else ()
        return tuple(name.strip().lower() for name in given)

    def default_budget(self, priority: int) -> DefaultBudget | None:
        """Return the default budget of a workload whose pods have that priority, or None."""
        return _of_priority(self.default_budgets, priority)

    def budget_bound(self, priority: int) -> BudgetBound | None:
        """Return the bound for budgets of pods of that priority; None means unbounded."""
        return _of_priority(self.budget_bounds, priority)

    @property
    def possible_bounds(self) -> tuple[BudgetBound | None, ...]:
        """The bounds that apply to any priority; None is included if some priorities have no bound."""
        covers_all = bool(self.budget_bounds) and self.budget_bounds[-1].min_priority is None
        return self.budget_bounds if covers_all else (*self.budget_bounds, None)


def _of_priority(entries: Iterable[Entry], priority: int) -> Entry | None:
    return next((one for one in entries if one.min_priority is None or one.min_priority <= priority), None)


class DisruptionPolicyStatus(APIStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The usage of the caps; an unlisted bucket is full."""

    caps: tuple[CapStatus, ...] = ()


class DisruptionPolicy(Kubernetes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster's disruption rules (podium.dev/v1alpha1)."""

    spec: DisruptionPolicySpec = DisruptionPolicySpec()
    status: DisruptionPolicyStatus = DisruptionPolicyStatus()

    def caps_on(self, component: str, namespace: str) -> dict[CapBucket, Rate]:
        """Return the buckets from which a disruption by a component ("" if unstated) in a namespace takes tokens."""
        return {cap.bucket(namespace): cap.rate for cap in self.spec.caps if cap.counts(component)}

    def exhausted_cap(self, component: str, namespace: str, now: int) -> tuple[CapBucket, Rate, int] | None:
        """Return the cap that forbids a disruption now: its bucket, its rate, and the time of the next token.

        None if allowed. Of several caps, the one that forbids it longest.
        """
        full = full_times(self.status.caps)
        waits = [
            (rate.next_ns(full.get(bucket, 0), now), bucket, rate)
            for bucket, rate in sorted(self.caps_on(component, namespace).items())
        ]
        next_ns, bucket, rate = max(waits, key=lambda wait: wait[0], default=(now, None, None))
        return None if bucket is None or rate is None or next_ns <= now else (bucket, rate, next_ns)

    def status_after(self, component: str, namespace: str, now: int) -> Raw | None:
        """Return the status after another disruption by the component; None if nothing changes.

        It takes a token from each bucket that has one: a disruption beyond the caps takes what is available.
        """
        full = full_times(self.status.caps)
        taken = {
            bucket: rate.taken(full.get(bucket, 0), now)
            for bucket, rate in self.caps_on(component, namespace).items()
            if rate.tokens(full.get(bucket, 0), now) > 0
        }
        return self.status_with(taken, now) if taken else None

    def status_with(self, full: Mapping[CapBucket, int], now: int) -> Raw:
        """Return the status with changed times at which buckets are full again."""
        return _status({**full_times(self.status.caps), **full}, now)

    def status_carried_over(self, before: DisruptionPolicy) -> Raw:
        """Return the status of this policy as a replacement of `before`: used tokens of a cap still count."""
        rates, old = ({cap.scope: cap.rate for cap in policy.spec.caps} for policy in (self, before))
        full = {
            bucket: used if rate == old[bucket.scope] else rate.carried_over(used, old[bucket.scope])
            for bucket, used in full_times(before.status.caps).items()
            if bucket.scope in old and (rate := rates.get(bucket.scope)) is not None
        }
        return _status(full, 0)


MAX_DISRUPTIONS = "podium.dev/max-disruptions"
"""An annotation of a PodDisruptionBudget: how many of its pods may be disrupted per period, such as "1/1h"."""

DISRUPTION_RATE = "podium.dev/disruption-rate"
"""An annotation of a PodDisruptionBudget that replaces `status.disruptionRate` if another controller owns it."""

_FORM = re.compile(r"([0-9]{1,6})/(.{1,32})")


class Rate(Struct, frozen=True):
    """A burst of at most ``count``, then one in every ``count``-th part of ``period_ns``.

    The bucket holds ``count`` tokens and regains one every ``interval_ns``. Its whole state is the time ``full_ns`` at
    which it is full again; each token taken postpones that by one interval.
    """

    count: int
    period_ns: int

    @property
    def interval_ns(self) -> int:
        """The time in which the bucket regains one token."""
        return -(-self.period_ns // self.count)

    def tokens(self, full_ns: int, now: int) -> int:
        """Return the number of tokens now in a bucket that is full at ``full_ns``."""
        missing_ns = max(0, full_ns - now)
        return self.count + (-missing_ns // self.interval_ns)

    def taken(self, full_ns: int, now: int) -> int:
        """Return when the bucket is full again if one more token is taken now."""
        return max(full_ns, now) + self.interval_ns

    def next_ns(self, full_ns: int, now: int) -> int:
        """Return when a token is available: ``now`` if there is one."""
        return max(now, full_ns - (self.count - 1) * self.interval_ns)

    def carried_over(self, full_ns: int, before: Rate) -> int:
        """Return when the bucket is full with this rate, if with the rate ``before`` it was full at ``full_ns``.

        The time at which the bucket was empty is the same for both rates.
        """
        return full_ns - before.count * before.interval_ns + self.count * self.interval_ns

    def __str__(self) -> str:
        return f"{self.count}/{format_duration(self.period_ns)}"


@lru_cache(maxsize=8_192)
def parse_rate(text: str) -> Rate:
    """Return the rate of a text such as "1/1h" or "5/10m". Raises ValueError for an invalid text."""
    found = _FORM.fullmatch(text)
    if found is None or int(found[1]) < 1:
        raise ValueError(f'{errors.shown(text)} is not a rate; write how many in how long, as in "1/1h"')
    period_ns = parse_duration(found[2])
    if period_ns <= 0:
        raise ValueError(f'{errors.shown(text)}: the period is not longer than 0s; write it as in "1/1h"')
    return Rate(int(found[1]), period_ns)


MAX_BUCKETS = 1_000
"""The maximum number of non-full buckets in a status; beyond it, those that are full again soonest are omitted.

kube-apiserver's event rate limits similarly forget namespaces (plugin/pkg/admission/eventratelimit, cacheSize)."""


class CapScope(NamedTuple):
    """The scope of a cap: a component ("" for all of them together), cluster-wide or per namespace."""

    component: str
    by_namespace: bool


class CapBucket(NamedTuple):
    """The key of a token bucket: a component ("" for all), and a namespace ("" for the cluster)."""

    component: str = ""
    namespace: str = ""

    @property
    def scope(self) -> CapScope:
        return CapScope(self.component, bool(self.namespace))

    def __str__(self) -> str:
        if not self.component:
            return f"namespace {self.namespace}" if self.namespace else "all components"
        return f"component {self.component}" + (f" in namespace {self.namespace}" if self.namespace else "")


class Cap(APIStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit on disruptions of pods that have a budget: a rate such as "5/1h".

    It counts the disruptions of one component, or without one those of all together. `per` says whether it applies to
    the whole cluster, or to each namespace separately.
    """

    component: str | None = None
    max: str
    per: Literal["Cluster", "Namespace"] = "Cluster"

    @property
    def scope(self) -> CapScope:
        """The cap's scope; a policy has at most one cap for each."""
        return CapScope(self.component or "", self.per == "Namespace")

    @property
    def rate(self) -> Rate:
        """The rate. Raises ValueError for an invalid rate."""
        return parse_rate(self.max)

    def counts(self, component: str) -> bool:
        """Return whether disruptions by that component count."""
        return self.component is None or self.component == component

    def bucket(self, namespace: str) -> CapBucket:
        """Return the bucket from which a disruption in a namespace takes a token."""
        return CapBucket(self.component or "", namespace if self.per == "Namespace" else "")


class CapStatus(APIStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The usage of a cap: the token bucket of the rate is full again at `full_time`.

    `component` and `namespace` are set if the cap is for one component or per namespace.
    """

    component: str | None = None
    namespace: str | None = None
    full_time: str

    @property
    def bucket(self) -> CapBucket:
        return CapBucket(self.component or "", self.namespace or "")


def full_times(statuses: Iterable[CapStatus]) -> dict[CapBucket, int]:
    """Return when each bucket is full again; unlisted buckets are full."""
    return {status.bucket: parse_time(status.full_time) for status in statuses}


def _status(full: Mapping[CapBucket, int], now: int) -> Raw:
    """Return the status with the buckets that are not full at ``now``, by component and namespace."""
    used = sorted((-full_ns, bucket) for bucket, full_ns in full.items() if full_ns > now)[:MAX_BUCKETS]
    caps: list[Raw] = []
    for full_ns, bucket in sorted(used, key=lambda found: found[1]):
        named = {name: value for name, value in bucket._asdict().items() if value}
        caps.append({**named, "fullTime": format_exact_time(-full_ns)})
    return {"caps": caps}
