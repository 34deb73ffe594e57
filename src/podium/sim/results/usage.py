"""The requested share of the cluster over time, and the disruptions of budgets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.quantity import PODS
from podium.api.resource_requests import effective_spec, node_allocatable, pod_requests
from podium.api.selectors import LabelSelector, compile_label_selector
from podium.controllers.disruption.budget import is_healthy
from podium.controllers.indexes import SelectorIndex
from podium.controllers.ledger.disruption import Consumption

_HOUR = 3600 * 10**9

Level = tuple[tuple[tuple[str, int], ...], tuple[int, ...]]
"""Offered amounts of each resource by name, and held amounts in the order of first use.

Equal levels have equal shares; different ones may have them, too."""


def _share(amount: int, total: int) -> float:
    return round(amount / total, 6) if total else 0.0


Value = TypeVar("Value")

MOST_POINTS = 500
"""The number of points of a series; longer ones drop every second point, except the last."""


class Series(msgspec.Struct, Generic[Value]):
    """A value over time, in nanoseconds: its changes, of one instant the last.

    `points` are by time, about `most` at most, and at least `apart_ns` apart since there were too many.
    """

    most: int = MOST_POINTS
    points: list[tuple[int, Value]] = []
    apart_ns: int = 0

    def put(self, now: int, value: Value) -> None:
        """Record the value from now on; times do not decrease."""
        points = self.points
        if points:
            since, last = points[-1]
            if last == value:
                return
            if since == now or (self.apart_ns and now - points[-2][0] < self.apart_ns):
                points[-1] = (now, value)
                return
        points.append((now, value))
        if len(points) > self.most:
            self.points = [point for place, point in enumerate(points) if place % 2 == 0 or place == len(points) - 1]
            self.apart_ns = max(2 * self.apart_ns, (now - points[0][0]) // self.most)


Amounts = Mapping[str, int]
"""Amounts by resource: cpu in milli, others in units."""


@dataclass(slots=True, eq=False)
class AmountIntegral:
    """Present amounts by resource, and their integral over time. Times, in any unit, do not decrease."""

    amounts: dict[str, int] = field(default_factory=dict)
    # The integral up to the last change.
    _sums: dict[str, int] = field(default_factory=dict)
    _now: int = 0

    def add(self, amounts: Amounts, sign: int, now: int) -> None:
        """Add (1) or remove (-1) amounts."""
        if now != self._now:
            self.over_time(now)
        total = self.amounts
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + sign * amount

    def over_time(self, now: int) -> Amounts:
        """Return the integral up to `now`."""
        elapsed, self._now = now - self._now, now
        for name, amount in self.amounts.items():
            self._sums[name] = self._sums.get(name, 0) + amount * elapsed
        return self._sums


class RequestedUsage:
    """Integrates, for each resource, what nodes offer and pods request from their binding to their end or removal.

    Pods may exceed their node and be on unknown nodes; `held` counts those on known nodes. Times do not decrease.
    """

    def __init__(self, start_ns: int) -> None:
        self.consumption = Consumption(start_ns)
        """The requests of namespaces by priority and hour."""
        self._start_ns = self.until_ns = start_ns
        # The sum of the nodes' arrival times minus their removal times, from the start.
        self._nodes_came_ns = 0
        # The offered amounts by resource; None after a node changed.
        self._totals: tuple[tuple[str, int], ...] | None = None
        self._allocatable: dict[str, Amounts] = {}
        # By node and pod uid, the held amounts.
        self._on: dict[str, dict[str, Amounts]] = {}
        self.allocatable = AmountIntegral()
        self.held = AmountIntegral()

    @property
    def node_count(self) -> int:
        return len(self._allocatable)

    def pods_on(self, name: str) -> Collection[str]:
        return self._on.get(name, ())

    @property
    def node_hours(self) -> float:
        """Return the sum of the nodes' times, in hours."""
        elapsed_ns = self.until_ns - self._start_ns
        return round((self.node_count * elapsed_ns - self._nodes_came_ns) / _HOUR, 6)

    @property
    def level(self) -> Level:
        """Return the present offered and requested amounts."""
        if self._totals is None:
            offered = self.allocatable.amounts
            self._totals = tuple([(name, offered[name]) for name in sorted(offered) if offered[name] and name != PODS])
        return self._totals, tuple(self.held.amounts.values())

    def shares_at(self, level: Level) -> dict[str, float]:
        """Return the requested share of each offered resource, by name."""
        totals, amounts = level
        held = dict(zip(self.held.amounts, amounts, strict=False))
        return {name: round(held.get(name, 0) / total, 6) for name, total in totals}

    def count_pod(self, pod: Pod, now: int) -> None:
        """Count a pod from now on; times do not decrease. Raises ValueError if it is counted already."""
        requests, pods = pod_requests(effective_spec(pod)), self._on.setdefault(pod.spec.node_name, {})
        if pod.metadata.uid in pods:
            raise ValueError(f"pod {pod.metadata.uid} is booked already")
        pods[pod.metadata.uid] = requests
        if pod.spec.node_name in self._allocatable:
            self.held.add(requests, 1, now - self._start_ns)
        self.consumption.count(pod, requests, now)

    def drop_pod(self, uid: str, node: str, now: int) -> None:
        pods = self._on[node]
        amounts = pods.pop(uid)
        if not pods:
            del self._on[node]
        if node in self._allocatable:
            self.held.add(amounts, -1, now - self._start_ns)
        self.consumption.remove(uid, now)

    def observe_node(self, node: Node, now: int, *, is_gone: bool) -> None:
        """Record that a node was added, changed or removed; the pods of a removed one stay registered on it."""
        elapsed_ns, name = now - self._start_ns, node.metadata.name
        self._totals = None
        before = self._allocatable.pop(name, None)
        if before is not None:
            self.allocatable.add(before, -1, elapsed_ns)
        if not is_gone:
            self._allocatable[name] = node_allocatable(node.status)
            self.allocatable.add(self._allocatable[name], 1, elapsed_ns)
        if is_gone or before is None:
            sign = -1 if is_gone else 1
            self._nodes_came_ns += sign * elapsed_ns
            for amounts in self._on.get(name, {}).values():
                self.held.add(amounts, sign, elapsed_ns)

    def shares(self) -> dict[str, dict[str, float]]:
        """Return the requested share of each offered resource: on average so far, and now."""
        elapsed_ns = self.until_ns - self._start_ns
        final, held = self.allocatable.amounts, self.held.amounts
        offered, requested = self.allocatable.over_time(elapsed_ns), self.held.over_time(elapsed_ns)
        if not any(offered.values()):
            offered, requested = final, held
        return {
            name: {
                "average": _share(requested.get(name, 0), offered[name]),
                "final": _share(held.get(name, 0), final[name]),
            }
            for name in sorted(final)
            if name != PODS and (offered[name] or final[name])
        }


@dataclass(slots=True)
class DisruptionTimes:
    """The times of disruptions of a budget's pods, in nanoseconds, ascending."""

    voluntary: list[int] = field(default_factory=list)
    unplanned: list[int] = field(default_factory=list)

    def since(self, time_ns: int) -> tuple[int, int]:
        """Return the numbers of voluntary and unplanned disruptions after a time."""
        voluntary, unplanned = (len(times) - bisect_right(times, time_ns) for times in (self.voluntary, self.unplanned))
        return voluntary, unplanned


class BudgetDisruptions:
    """Records when healthy pods with a budget stop being healthy.

    Voluntary: deleted through the API (eviction, preemption, deletion). Unplanned: failed, no longer ready, or gone
    without a graceful end. A pod that succeeds is not disrupted.
    """

    def __init__(self) -> None:
        self.budgets: dict[str, LabelSelector | None] = {}
        """The selectors of all budgets by key; without any, writes to pods do not matter."""
        self._selectors: SelectorIndex[str] = SelectorIndex()
        self._found: dict[str, DisruptionTimes] = {}

    def of(self, budget: str) -> DisruptionTimes:
        """Return the disruptions of a budget's pods since it was created."""
        return self._found.get(budget, DisruptionTimes())

    def pod_changed(self, before: Kubernetes, pod: Pod, now: int, *, is_gone: bool) -> None:
        """Record the change or deletion of a pod at ``now``; times do not decrease."""
        if not isinstance(before, Pod) or before.is_terminal or not is_healthy(before):
            return
        is_voluntary = pod.is_terminating
        if is_voluntary or is_gone or (not is_healthy(pod) and pod.status.phase != "Succeeded"):
            for key in self._selectors.matching(pod.metadata.labels, pod.metadata.namespace):
                found = self._found.setdefault(key, DisruptionTimes())
                (found.voluntary if is_voluntary else found.unplanned).append(now)

    def budget_written(self, budget: PodDisruptionBudget, *, is_gone: bool) -> None:
        key, selector = budget.key, budget.spec.selector
        if is_gone:
            self.budgets.pop(key, None)
            self._found.pop(key, None)
            self._selectors.remove(key)
        elif key not in self.budgets or self.budgets[key] != selector:
            self.budgets[key] = selector
            self._selectors.put(key, compile_label_selector(selector), budget.metadata.namespace)
