"""Evictions that budgets refused, and how long budgets had too few healthy pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.controllers.actions import Evict
from podium.controllers.observations import Answer, Answered, Problem
from podium.sim.history import seconds
from podium.store.store import Store


@dataclass(slots=True)
class Hold:
    """A refused eviction: from the first refusal until the pod was evicted or gone, None if it never was.

    `budgets` are the keys of those without allowed disruptions; none if something else refused. `cause` is the reason
    of the refusal's cause, such as DisruptionRate.
    """

    pod: str
    uid: str
    by: str
    budgets: tuple[str, ...]
    message: str
    from_ns: int
    until_ns: int | None = None
    tries: int = 0
    cause: str = ""

    def to_dict(self, start_ns: int, now: int) -> dict[str, Any]:
        until = now if self.until_ns is None else self.until_ns
        return {
            "pod": self.pod,
            "by": self.by,
            "budgets": list(self.budgets),
            "message": self.message,
            "from": seconds(self.from_ns - start_ns),
            "seconds": seconds(until - self.from_ns),
            "ended": self.until_ns is not None,
            "tries": self.tries,
        }


@dataclass(slots=True)
class BudgetHealth:
    """A budget's healthy and desired pods, and for how long there were too few."""

    budget: str
    desired: int = 0
    healthy: int = 0
    lowest: int = 0
    below_ns: int = 0
    since_ns: int = 0

    def pass_time(self, now: int) -> None:
        """Extend the present state until now."""
        elapsed = now - self.since_ns
        if elapsed:
            self.lowest = min(self.lowest, self.healthy)
            self.below_ns += elapsed * (self.healthy < self.desired)
            self.since_ns = now

    def to_dict(self) -> dict[str, Any]:
        return {
            "budget": self.budget,
            "desiredHealthy": self.desired,
            "healthy": self.healthy,
            "lowestHealthy": self.lowest,
            "belowSeconds": seconds(self.below_ns),
        }


class Holds:
    """Records refused evictions and the health of budgets; times do not decrease."""

    def __init__(self) -> None:
        # Open holds by pod uid, and finished ones.
        self._held: dict[str, Hold] = {}
        self._over: list[Hold] = []
        self._budgets: dict[str, BudgetHealth] = {}

    @property
    def has_held(self) -> bool:
        """Return whether a hold is open; otherwise writes to pods do not matter."""
        return bool(self._held)

    def answered(self, action: Evict, problem: Problem | None, store: Store, now: int) -> None:
        if problem is None:
            self.end(action.uid, now)
        elif Answered(action, problem).answer is Answer.FULL:
            held = self._held.get(action.uid)
            if held is None:
                held = Hold(action.pod, action.uid, action.cause, (), problem.message, now, cause=problem.cause)
                self._held[action.uid] = held
            held.tries += 1
            held.message = problem.message
            held.budgets = tuple(sorted({*held.budgets, *_used_up(action.pod, store)}))

    def holds(self) -> list[Hold]:
        """Return all holds, by time of the first refusal, then name."""
        return sorted([*self._over, *self._held.values()], key=lambda held: (held.from_ns, held.pod, held.uid))

    def budgets(self, now: int) -> list[BudgetHealth]:
        """Return the budgets up to now, by key."""
        for found in self._budgets.values():
            found.pass_time(now)
        return [self._budgets[key] for key in sorted(self._budgets)]

    def budget_written(self, budget: PodDisruptionBudget, now: int) -> None:
        status = budget.status
        found = self._budgets.get(budget.key)
        if found is None:
            found = BudgetHealth(budget.key, lowest=status.current_healthy, since_ns=now)
            self._budgets[budget.key] = found
        found.pass_time(now)
        if not found.below_ns and not found.desired:
            # The status before the controller's first count does not matter.
            found.lowest = status.current_healthy
        found.desired, found.healthy = status.desired_healthy, status.current_healthy

    def end(self, uid: str, now: int) -> None:
        """Record that a pod was evicted or is gone."""
        held = self._held.pop(uid, None)
        if held is not None:
            held.until_ns = now
            self._over.append(held)


def _used_up(key: str, store: Store) -> list[str]:
    """Return the pod's budgets without allowed disruptions, by key; all of its budgets if each allows some."""
    stored = store.find("Pod", key)
    if stored is None or not isinstance(stored.object, Pod):
        return []
    meta = stored.object.metadata
    budgets = [found.object for found in store.objects("PodDisruptionBudget", meta.namespace)]
    covering = [
        budget
        for budget in budgets
        if isinstance(budget, PodDisruptionBudget) and compile_label_selector(budget.spec.selector).matches(meta.labels)
    ]
    return [budget.key for budget in covering if not budget.status.disruptions_allowed] or [
        budget.key for budget in covering
    ]
