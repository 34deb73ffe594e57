"""What a cluster's administrator decides about disruptions: DisruptionPolicy (podium.dev/v1alpha1).

The design for controlled rescheduling leaves it to the administrator to order the priorities, to give workloads
default budgets, to limit what any one component disrupts, and to bound the avoid lists. One object, named `default`,
says all of that; a cluster without it has the defaults given here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from podium.api.disruption_cap import Cap, CapBucket, CapStatus, full_times, written_buckets
from podium.api.disruption_rate import Rate
from podium.api.meta import Int32, Kubernetes, Narrow, Raw
from podium.api.times import parse_duration

POLICY_NAME = "default"
"""The name of a cluster's one DisruptionPolicy."""

SCHEDULER = "scheduler"
"""The component whose cap preemptions count for."""


class DefaultBudget(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The budget of workloads that have none and whose pods have at least this priority; None is any priority."""

    min_priority: Int32 | None = None
    max_unavailable: Int32 | str | None = None
    min_available: Int32 | str | None = None


class BudgetBound(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How strict budgets of pods of at least this priority may be; None is any priority.

    With all pods up, so many of them must be allowed to be disrupted at a time (a number, or a percentage of those
    expected); and where a budget has a rate, disruptions must come back at least as quickly as with this one.
    """

    min_priority: Int32 | None = None
    min_disruptions: Int32 | str | None = None
    min_rate: str | None = None


class AvoidLists(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many controllers a node's avoid list names at most, and how long each stays on it."""

    max_entries: Int32 = 16
    expire_after: str = "1h"

    @property
    def expire_after_ns(self) -> int:
        """How long an entry stays."""
        return parse_duration(self.expire_after)


class DisruptionPolicySpec(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds in the whole cluster.

    `priorities` are the names of priority classes, highest first: `Critical > Normal`, or a list. `several_budgets`
    says whether a pod with several disruption budgets cannot be evicted, or all of them must allow it.
    `default_budgets` and `budget_bounds` stand from the highest priority down.
    """

    priorities: str | tuple[str, ...] = ()
    several_budgets: Literal["Refuse", "RequireAll"] = "Refuse"
    default_budgets: tuple[DefaultBudget, ...] = ()
    budget_bounds: tuple[BudgetBound, ...] = ()
    caps: tuple[Cap, ...] = ()
    avoid_lists: AvoidLists = AvoidLists()

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the priority classes, highest first.

        They are the names of `priorities` in lower case, since Kubernetes takes no other letters in names of objects.
        """
        given = self.priorities
        if isinstance(given, str):
            given = tuple(given.split(">")) if given.strip() else ()
        return tuple(name.strip().lower() for name in given)

    def default_budget(self, priority: int) -> DefaultBudget | None:
        """The default budget of a workload whose pods have that priority, or None."""
        budgets = self.default_budgets
        return next(
            (budget for budget in budgets if budget.min_priority is None or budget.min_priority <= priority), None
        )

    def budget_bound(self, priority: int) -> BudgetBound | None:
        """How strict the budgets of pods of that priority may be; None is as strict as they like."""
        bounds = self.budget_bounds
        return next((bound for bound in bounds if bound.min_priority is None or bound.min_priority <= priority), None)

    @property
    def possible_bounds(self) -> tuple[BudgetBound | None, ...]:
        """The bounds of pods of any priority; None is among them where those of some have none."""
        covers_all = bool(self.budget_bounds) and self.budget_bounds[-1].min_priority is None
        return self.budget_bounds if covers_all else (*self.budget_bounds, None)


class DisruptionPolicyStatus(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is used of the caps; a bucket that is not listed is full."""

    caps: tuple[CapStatus, ...] = ()


class DisruptionPolicy(Kubernetes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of a cluster for disruptions (podium.dev/v1alpha1)."""

    spec: DisruptionPolicySpec = DisruptionPolicySpec()
    status: DisruptionPolicyStatus = DisruptionPolicyStatus()

    def caps_on(self, component: str, namespace: str) -> dict[CapBucket, Rate]:
        """The buckets that a disruption takes of: by a component ("" for one that names itself not), in a namespace."""
        return {cap.bucket(namespace): cap.rate for cap in self.spec.caps if cap.counts(component)}

    def cap_full_ns(self, bucket: CapBucket) -> int:
        """When a bucket is full again; 0 for one that nothing was taken of."""
        return full_times(self.status.caps).get(bucket, 0)

    def exhausted_cap(self, component: str, namespace: str, now: int) -> tuple[CapBucket, Rate, int] | None:
        """The cap that forbids a disruption now: its bucket, its rate, and when there is a token; None where none does.

        Of several the one that forbids it longest.
        """
        full = full_times(self.status.caps)
        waits = [
            (rate.next_ns(full.get(bucket, 0), now), bucket, rate)
            for bucket, rate in sorted(self.caps_on(component, namespace).items())
        ]
        next_ns, bucket, rate = max(waits, key=lambda wait: wait[0], default=(now, None, None))
        return None if bucket is None or rate is None or next_ns <= now else (bucket, rate, next_ns)

    def cap_next_ns(self, component: str, namespace: str, now: int) -> int:
        """When the component may disrupt next in a namespace: `now` where it may at once."""
        exhausted = self.exhausted_cap(component, namespace, now)
        return now if exhausted is None else exhausted[2]

    def status_after(self, component: str, namespace: str, now: int) -> Raw | None:
        """The status once the component has disrupted another time; None where nothing changes.

        That takes a token of each bucket that has one: a disruption that the caps do not allow takes what there is.
        """
        full = full_times(self.status.caps)
        taken = {
            bucket: rate.taken(full.get(bucket, 0), now)
            for bucket, rate in self.caps_on(component, namespace).items()
            if rate.tokens(full.get(bucket, 0), now) > 0
        }
        return self.status_with(taken, now) if taken else None

    def status_with(self, full: Mapping[CapBucket, int], now: int) -> Raw:
        """The status where these buckets are full again at other times."""
        return {"caps": written_buckets({**full_times(self.status.caps), **full}, now)}

    def status_carried_over(self, before: DisruptionPolicy) -> Raw:
        """The status of this policy where it takes the place of `before`: what was used of a cap still counts."""
        rates, old = ({cap.scope: cap.rate for cap in policy.spec.caps} for policy in (self, before))
        full = {
            bucket: used if rate == old[bucket.scope] else rate.carried_over(used, old[bucket.scope])
            for bucket, used in full_times(before.status.caps).items()
            if bucket.scope in old and (rate := rates.get(bucket.scope)) is not None
        }
        return {"caps": written_buckets(full, 0)}
