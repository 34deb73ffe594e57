"""The administrator's disruption rules of a cluster: DisruptionPolicy (podium.dev/v1alpha1).

In the design for controlled rescheduling the administrator orders the priorities, gives workloads default budgets,
limits the disruptions of each component, and bounds the avoid lists. One object, named `default`, contains all of that;
a cluster without it has the defaults given here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from podium.api.disruption_rate import Cap, CapBucket, CapStatus, Rate, full_times, written_buckets
from podium.api.meta import Int32, Kubernetes, Narrow, Raw
from podium.api.qos import QOSClass
from podium.api.selectors import LabelSelector
from podium.api.times import parse_duration

POLICY_NAME = "default"
"""The name of a cluster's only DisruptionPolicy."""

SCHEDULER = "scheduler"
"""The component whose cap counts preemptions."""


class DefaultBudget(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The budget of workloads without one whose pods have at least this priority; None means any priority."""

    min_priority: Int32 | None = None
    max_unavailable: Int32 | str | None = None
    min_available: Int32 | str | None = None


class BudgetBound(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The maximum strictness of budgets of pods of at least this priority; None means any priority.

    With all pods healthy, so many disruptions at a time must be allowed (a number, or a percentage of the expected
    pods). If a budget has a rate, its tokens must return at least as quickly as with this one.
    """

    min_priority: Int32 | None = None
    min_disruptions: Int32 | str | None = None
    min_rate: str | None = None


class PriorityRule(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The PriorityClass of new pods that meet all conditions; an omitted condition matches any pod.

    `when_stated` is the treatment of a pod that states another class, or a priority: `Keep` leaves it unchanged,
    `Replace` assigns the rule's class, `Refuse` refuses the pod.
    """

    name: str
    priority_class_name: str
    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    qos_classes: tuple[QOSClass, ...] = ()
    when_stated: Literal["Keep", "Replace", "Refuse"] = "Keep"

    @property
    def class_name(self) -> str:
        """The name of the class, in lower case like the names of `priorities`."""
        return self.priority_class_name.strip().lower()

    @property
    def is_unconditional(self) -> bool:
        """Whether the rule has no conditions."""
        given = [one for one in (self.pod_selector, self.namespace_selector) if one is not None]
        return not self.qos_classes and not any(one.match_labels or one.match_expressions for one in given)


class AvoidLists(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The maximum number of controllers on a node's avoid list, and the lifetime of the entries."""

    max_entries: Int32 = 16
    expire_after: str = "1h"

    @property
    def expire_after_ns(self) -> int:
        """The lifetime of an entry."""
        return parse_duration(self.expire_after)


class DisruptionPolicySpec(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
        budgets = self.default_budgets
        return next(
            (budget for budget in budgets if budget.min_priority is None or budget.min_priority <= priority), None
        )

    def budget_bound(self, priority: int) -> BudgetBound | None:
        """Return the bound for budgets of pods of that priority; None means unbounded."""
        bounds = self.budget_bounds
        return next((bound for bound in bounds if bound.min_priority is None or bound.min_priority <= priority), None)

    @property
    def possible_bounds(self) -> tuple[BudgetBound | None, ...]:
        """The bounds that apply to any priority; None is included if some priorities have no bound."""
        covers_all = bool(self.budget_bounds) and self.budget_bounds[-1].min_priority is None
        return self.budget_bounds if covers_all else (*self.budget_bounds, None)


class DisruptionPolicyStatus(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The usage of the caps; an unlisted bucket is full."""

    caps: tuple[CapStatus, ...] = ()


class DisruptionPolicy(Kubernetes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster's disruption rules (podium.dev/v1alpha1)."""

    spec: DisruptionPolicySpec = DisruptionPolicySpec()
    status: DisruptionPolicyStatus = DisruptionPolicyStatus()

    def caps_on(self, component: str, namespace: str) -> dict[CapBucket, Rate]:
        """Return the buckets from which a disruption by a component ("" if unstated) in a namespace takes tokens."""
        return {cap.bucket(namespace): cap.rate for cap in self.spec.caps if cap.counts(component)}

    def cap_full_ns(self, bucket: CapBucket) -> int:
        """Return when a bucket is full again; 0 for an unused one."""
        return full_times(self.status.caps).get(bucket, 0)

    def exhausted_cap(self, component: str, namespace: str, now: int) -> tuple[CapBucket, Rate, int] | None:
        """Return the cap that forbids a disruption now: its bucket, its rate, and the time of the next token.

        None if allowed.

        Of several caps, the one that forbids it longest.
        """
        full = full_times(self.status.caps)
        waits = [
            (rate.next_ns(full.get(bucket, 0), now), bucket, rate)
            for bucket, rate in sorted(self.caps_on(component, namespace).items())
        ]
        next_ns, bucket, rate = max(waits, key=lambda wait: wait[0], default=(now, None, None))
        return None if bucket is None or rate is None or next_ns <= now else (bucket, rate, next_ns)

    def cap_next_ns(self, component: str, namespace: str, now: int) -> int:
        """Return when the component may disrupt next in a namespace: `now` if it may immediately."""
        exhausted = self.exhausted_cap(component, namespace, now)
        return now if exhausted is None else exhausted[2]

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
        return {"caps": written_buckets({**full_times(self.status.caps), **full}, now)}

    def status_carried_over(self, before: DisruptionPolicy) -> Raw:
        """Return the status of this policy as a replacement of `before`: used tokens of a cap still count."""
        rates, old = ({cap.scope: cap.rate for cap in policy.spec.caps} for policy in (self, before))
        full = {
            bucket: used if rate == old[bucket.scope] else rate.carried_over(used, old[bucket.scope])
            for bucket, used in full_times(before.status.caps).items()
            if bucket.scope in old and (rate := rates.get(bucket.scope)) is not None
        }
        return {"caps": written_buckets(full, 0)}
