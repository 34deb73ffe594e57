"""What a cluster's administrator decides about disruptions: DisruptionPolicy (podium.dev/v1alpha1).

The design for controlled rescheduling leaves it to the administrator to order the priorities, to give workloads
default budgets, to limit what any one component disrupts, and to bound the avoid lists. One object, named `default`,
says all of that; a cluster without it has the defaults given here.
"""

from __future__ import annotations

from typing import Literal

from podium.api.disruption_rate import Rate, parse_rate
from podium.api.meta import Int32, Kubernetes, Narrow, Raw
from podium.api.times import format_exact_time, parse_duration, parse_time

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


class Cap(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a component may disrupt pods that have a budget: a rate such as "5/1h"."""

    component: str
    max: str


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


class CapStatus(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a component has used of its cap: the token bucket of the rate is full again at `full_time`."""

    component: str
    full_time: str


class DisruptionPolicyStatus(Narrow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the components have used; the bucket of one that is not listed is full."""

    caps: tuple[CapStatus, ...] = ()


class DisruptionPolicy(Kubernetes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of a cluster for disruptions (podium.dev/v1alpha1)."""

    spec: DisruptionPolicySpec = DisruptionPolicySpec()
    status: DisruptionPolicyStatus = DisruptionPolicyStatus()

    def cap_rate(self, component: str) -> Rate | None:
        """How often the component may disrupt; None is without limit."""
        return next((parse_rate(cap.max) for cap in self.spec.caps if cap.component == component), None)

    def cap_full_ns(self, component: str) -> int:
        """When the bucket of the component's cap is full again; 0 for one that it did not use yet."""
        caps = self.status.caps
        return next((parse_time(cap.full_time) for cap in caps if cap.component == component), 0)

    def cap_next_ns(self, component: str, now: int) -> int:
        """When the component may disrupt next: `now` where it may at once."""
        rate = self.cap_rate(component)
        return now if rate is None else rate.next_ns(self.cap_full_ns(component), now)

    def status_after(self, component: str, now: int) -> Raw:
        """The status once the component has disrupted another time. Raises ValueError for one without a cap."""
        rate = self.cap_rate(component)
        if rate is None:
            raise ValueError(f"{component} has no cap")
        full = {cap.component: parse_time(cap.full_time) for cap in self.status.caps}
        return _status({**full, component: rate.taken(full.get(component, 0), now)})

    def status_with(self, component: str, full_ns: int) -> Raw:
        """The status where the bucket of a component's cap is full again at a time."""
        full = {cap.component: parse_time(cap.full_time) for cap in self.status.caps}
        return _status({**full, component: full_ns})

    def status_carried_over(self, before: DisruptionPolicy) -> Raw:
        """The status of this policy where it takes the place of `before`: what was used of a cap still counts."""
        full = {}
        for cap in self.spec.caps:
            rate, old = parse_rate(cap.max), before.cap_rate(cap.component)
            used = before.cap_full_ns(cap.component)
            if old is not None and used:
                full[cap.component] = used if old == rate else rate.carried_over(used, old)
        return _status(full)


def _status(full: dict[str, int]) -> Raw:
    """The status whose buckets are full again at those times, by component."""
    return {
        "caps": [
            {"component": component, "fullTime": format_exact_time(time)} for component, time in sorted(full.items())
        ]
    }
