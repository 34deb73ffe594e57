"""Measurements over a run: readiness by workload, refused evictions, budgets, nodes, and sums over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import asdict

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from podium.api.resource_requests import effective_spec, node_allocatable, pod_requests
from podium.api.selectors import compile_label_selector
from podium.api.times import seconds
from podium.controllers.actions import Evict
from podium.controllers.ledger.disruption import UsageEntry
from podium.controllers.observations import ActionFinished, Answer, Problem
from podium.sim.history import Backlog, Write
from podium.sim.results.readiness import NodeLife, Readiness, WorkloadReadiness
from podium.sim.results.usage import Amounts, BudgetDisruptions, Level, RequestedUsage, Series
from podium.store.store import Store
from podium.store.watch_log import WatchEvent


@dataclass(slots=True)
class RefusedEviction:
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
    """A budget's expected, desired and healthy pods, and for how long there were too few."""

    budget: str
    spec: PodDisruptionBudgetSpec
    expected: int = 0
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


class RefusalRecorder:
    """Records refused evictions and the health of budgets; times do not decrease."""

    def __init__(self) -> None:
        self.held: dict[str, RefusedEviction] = {}
        """The open holds by pod uid; without any, writes to pods do not matter."""
        self._over: list[RefusedEviction] = []
        self._budgets: dict[str, BudgetHealth] = {}

    def on_result(self, action: Evict, problem: Problem | None, store: Store, now: int) -> None:
        if problem is None:
            self.end(action.uid, now)
        elif ActionFinished(action, problem).answer is Answer.FULL:
            held = self.held.get(action.uid)
            if held is None:
                held = RefusedEviction(
                    action.pod, action.uid, action.cause, (), problem.message, now, cause=problem.cause
                )
                self.held[action.uid] = held
            held.tries += 1
            held.message = problem.message
            held.budgets = tuple(sorted({*held.budgets, *_used_up(action.pod, store)}))

    def holds(self) -> list[RefusedEviction]:
        """Return all holds, by time of the first refusal, then name."""
        return sorted([*self._over, *self.held.values()], key=lambda held: (held.from_ns, held.pod, held.uid))

    def budgets(self, now: int) -> list[BudgetHealth]:
        """Return the budgets up to now, by key."""
        for found in self._budgets.values():
            found.pass_time(now)
        return [self._budgets[key] for key in sorted(self._budgets)]

    def budget_written(self, budget: PodDisruptionBudget, now: int) -> None:
        status = budget.status
        found = self._budgets.get(budget.key)
        if found is None:
            found = BudgetHealth(budget.key, budget.spec, lowest=status.current_healthy, since_ns=now)
            self._budgets[budget.key] = found
        found.pass_time(now)
        if not found.below_ns and not found.desired:
            # The status before the controller's first count does not matter.
            found.lowest = status.current_healthy
        found.spec, found.expected = budget.spec, status.expected_pods
        found.desired, found.healthy = status.desired_healthy, status.current_healthy

    def end(self, uid: str, now: int) -> None:
        """Record that a pod was evicted or is gone."""
        held = self.held.pop(uid, None)
        if held is not None:
            held.until_ns = now
            self._over.append(held)


def _used_up(key: str, store: Store) -> list[str]:
    """Return the pod's budgets without allowed disruptions, by key; all of its budgets if each allows some."""
    pod = store.reading("Pod", key)
    if not isinstance(pod, Pod):
        return []
    budgets = store.typed(PodDisruptionBudget, pod.metadata.namespace)
    covering = [one for one in budgets if compile_label_selector(one.spec.selector).matches(pod.metadata.labels)]
    used_up = [budget for budget in covering if not budget.status.disruptions_allowed]
    return [budget.key for budget in used_up or covering]


class ObjectSizes:
    """The sizes of pods and nodes. Equal amounts are one object, so that a pod takes one dictionary entry."""

    def __init__(self) -> None:
        self.requests: dict[str, Amounts] = {}
        """By uid, the requests of every pod when first observed."""
        self.offers: dict[str, Amounts] = {}
        """By name, the last allocatable amounts of every node."""
        self.labels: dict[str, Mapping[str, str]] = {}
        """By name, the last labels of every node."""
        self._known: dict[tuple[tuple[str, int], ...], Amounts] = {}

    def node_changed(self, node: Node) -> None:
        self.offers[node.metadata.name] = self.amounts_of(node_allocatable(node.status))
        self.labels[node.metadata.name] = node.metadata.labels

    def amounts_of(self, amounts: Amounts) -> Amounts:
        return self._known.setdefault(tuple(amounts.items()), amounts)


_Moment = tuple[tuple[int, int, int], Level]
"""The parts of the sums at one time: nodes, ready and pending pods; and the usage."""


class ClusterSums(msgspec.Struct, frozen=True):
    """Sums over the cluster: nodes, ready and pending pods, and the requested share of each resource."""

    nodes: int
    ready: int
    pending: int
    requested: dict[str, float]


@dataclass(frozen=True, slots=True)
class Measures:
    """The measurements of a run; times in nanoseconds.

    `workload_of` has the workload of each pod by uid, `top_of` the topmost owner of owned workloads, by label. `sizes`
    are of pods and nodes, `usage` the requests of namespaces by priority and hour.
    """

    workloads: tuple[WorkloadReadiness, ...] = ()
    budgets: tuple[BudgetHealth, ...] = ()
    holds: tuple[RefusedEviction, ...] = ()
    nodes: tuple[NodeLife, ...] = ()
    series: tuple[tuple[int, ClusterSums], ...] = ()
    workload_of: dict[str, str] = field(default_factory=dict)
    top_of: dict[str, str] = field(default_factory=dict)
    sizes: ObjectSizes = field(default_factory=ObjectSizes)
    start_ns: int = 0
    end_ns: int = 0
    usage: tuple[UsageEntry, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "workloads": [workload.to_dict(self.start_ns) for workload in self.workloads],
            "budgets": [budget.to_dict() for budget in self.budgets],
            "holds": [held.to_dict(self.start_ns, self.end_ns) for held in self.holds],
            "series": [{"time": seconds(time - self.start_ns), **asdict(sums)} for time, sums in self.series],
            "usage": [used.to_dict() for used in self.usage],
        }


class Meters:
    """Measures a run; times do not decrease."""

    def __init__(self, start_ns: int, store: Store, backlog: Backlog) -> None:
        self._start_ns = self._now = start_ns
        self._store = store
        self._backlog = backlog
        self._backlog.join(self._take_in)
        self._usage = RequestedUsage(start_ns)
        self._disruptions = BudgetDisruptions()
        self.readiness = Readiness(self._usage)
        self._holds = RefusalRecorder()
        self._series: Series[_Moment] = Series()
        self._sizes = ObjectSizes()

    @property
    def disruptions(self) -> BudgetDisruptions:
        """Return the disruptions of each budget's pods."""
        self._backlog.clear()
        return self._disruptions

    def start(self, events: Iterable[WatchEvent]) -> None:
        """Record what existed before the run."""
        self._take_in([(event, self._now, "", "") for event in events])
        self.readiness.start()

    def on_result(self, action: Evict, problem: Problem | None, now: int) -> None:
        self._backlog.clear()
        self._holds.on_result(action, problem, self._store, now)

    def power(self, node: str, now: int, *, is_up: bool) -> None:
        """Record that a node's machine stopped or started."""
        self._backlog.clear()
        self._pass_time(now)
        self.readiness.power(node, now, is_up=is_up)

    def usage(self, now: int) -> RequestedUsage:
        """Return the usage up to now."""
        self._backlog.clear()
        self._usage.until_ns = now
        return self._usage

    def measures(self, now: int) -> Measures:
        """Return the measurements up to now."""
        self._backlog.clear()
        self._pass_time(now)
        self._sample()
        return Measures(
            tuple(self.readiness.workloads(now)),
            tuple(self._holds.budgets(now)),
            tuple(self._holds.holds()),
            tuple(self.readiness.nodes[name] for name in sorted(self.readiness.nodes)),
            tuple((time, self._sums_at(moment)) for time, moment in self._series.points),
            self.readiness.workload_of,
            self.readiness.tops.tops,
            self._sizes,
            self._start_ns,
            now,
            self._usage.consumption.read(now),
        )

    def _take_in(self, writes: Sequence[Write]) -> None:
        readiness, disruptions, holds = self.readiness, self._disruptions, self._holds
        has_budgets, has_held = bool(disruptions.budgets), bool(holds.held)
        for event, now, _, _ in writes:
            self._pass_time(now)
            object_, is_gone = event.stored.object, event.type == "DELETED"
            if isinstance(object_, Pod):
                if event.type == "ADDED":
                    self._sizes.requests[object_.metadata.uid] = self._sizes.amounts_of(
                        pod_requests(effective_spec(object_))
                    )
                readiness.pod_written(object_, now, is_gone=is_gone)
                if has_budgets and event.previous is not None:
                    disruptions.pod_changed(event.previous.object, object_, now, is_gone=is_gone)
                if has_held and (is_gone or object_.is_terminating):
                    holds.end(object_.metadata.uid, now)
            elif isinstance(object_, Node):
                readiness.node_written(object_, now, is_gone=is_gone)
                if not is_gone:
                    self._sizes.node_changed(object_)
            elif isinstance(object_, PodDisruptionBudget):
                disruptions.budget_written(object_, is_gone=is_gone)
                has_budgets = bool(disruptions.budgets)
                holds.budget_written(object_, now)
            else:
                readiness.on_write(event, now)

    def _pass_time(self, now: int) -> None:
        """Advance to a time; the state lasted since the previous one."""
        if now != self._now:
            self._sample()
            self._now = now

    def _sample(self) -> None:
        """Record the sums after all changes at this time."""
        usage, readiness, points = self._usage, self.readiness, self._series.points
        counts = (usage.node_count, readiness.ready, readiness.pending)
        moment = (counts, usage.level)
        if points:
            last = points[-1][1]
            # With equal counts, rounded shares may still be equal.
            if last[0] == counts and (last == moment or self._sums_at(last) == self._sums_at(moment)):
                return
        self._series.put(self._now, moment)

    def _sums_at(self, moment: _Moment) -> ClusterSums:
        (nodes, ready, pending), level = moment
        return ClusterSums(nodes, ready, pending, self._usage.shares_at(level))
