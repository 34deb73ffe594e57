"""What is measured over a run: readiness by workload, what budgets held, the life of nodes, and sums over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from podium.api.node import Node
from podium.api.pod import Pod
from podium.machines.actions import Evict
from podium.machines.observations import Problem
from podium.sim.backlog import Backlog, Write
from podium.sim.results.disruption_counts import DisruptionCounts
from podium.sim.results.holds import BudgetHealth, Hold, Holds
from podium.sim.results.readiness import NodeLife, Readiness, WorkloadReadiness
from podium.sim.results.series import Series
from podium.sim.results.sizes import Sizes
from podium.sim.results.usage import Level, Usage
from podium.sim.sim_event import seconds
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store

_Moment = tuple[tuple[int, int, int], Level]
"""What the sums of a moment are made of, once they are asked for: nodes, ready and pending pods; and the usage."""


class Sums(msgspec.Struct, frozen=True):
    """What holds for the whole cluster: nodes, ready and pending pods, and by resource the share that is requested."""

    nodes: int
    ready: int
    pending: int
    requested: tuple[tuple[str, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """The sums as JSON shows them."""
        return {
            "nodes": self.nodes,
            "ready": self.ready,
            "pending": self.pending,
            "requested": dict(self.requested),
        }


@dataclass(frozen=True, slots=True)
class Measures:
    """What was measured up to the end of a run; times in nanoseconds, `start_ns` is that of the run's start.

    `workload_of` has the workload of each pod by uid, `top_of` the topmost owner of a workload that has one, by label.
    `sizes` are what nodes offer and pods ask for.
    """

    workloads: tuple[WorkloadReadiness, ...] = ()
    budgets: tuple[BudgetHealth, ...] = ()
    holds: tuple[Hold, ...] = ()
    nodes: tuple[NodeLife, ...] = ()
    series: tuple[tuple[int, Sums], ...] = ()
    workload_of: dict[str, str] = field(default_factory=dict)
    top_of: dict[str, str] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=Sizes)
    start_ns: int = 0
    end_ns: int = 0

    def to_dict(self) -> dict[str, Any]:
        """What was measured as JSON shows it."""
        return {
            "workloads": [workload.to_dict(self.start_ns) for workload in self.workloads],
            "budgets": [budget.to_dict() for budget in self.budgets],
            "holds": [held.to_dict(self.start_ns, self.end_ns) for held in self.holds],
            "series": [{"time": seconds(time - self.start_ns), **sums.to_dict()} for time, sums in self.series],
        }


class Meters:
    """Takes in what happens in a run; times do not go back."""

    def __init__(self, start_ns: int, store: Store, backlog: Backlog) -> None:
        self._start_ns = self._now = start_ns
        self._store = store
        self._backlog = backlog
        self._backlog.join(self._take_in)
        self._usage = Usage(start_ns)
        self._disruptions = DisruptionCounts()
        self._readiness = Readiness(self._usage)
        self._holds = Holds()
        self._series: Series[_Moment] = Series()
        self._sizes = Sizes()

    @property
    def disruptions(self) -> DisruptionCounts:
        """How often the pods of each budget were disrupted."""
        self._backlog.clear()
        return self._disruptions

    def start(self, events: Iterable[WatchEvent]) -> None:
        """Take in what was there before the run."""
        self._take_in([(event, self._now, "", "") for event in events])
        self._readiness.start()

    def answered(self, action: Evict, problem: Problem | None, now: int) -> None:
        """Take in how an eviction that a component asked for ended."""
        self._backlog.clear()
        self._holds.answered(action, problem, self._store, now)

    def power(self, node: str, now: int, *, is_up: bool) -> None:
        """A node's machine stops or starts."""
        self._backlog.clear()
        self._pass_time(now)
        self._readiness.power(node, now, is_up=is_up)

    def usage(self, now: int) -> Usage:
        """How much of the cluster was requested up to now."""
        self._backlog.clear()
        self._usage.pass_time(now)
        return self._usage

    def measures(self, now: int) -> Measures:
        """What was measured up to now."""
        self._backlog.clear()
        self._pass_time(now)
        self._sample()
        return Measures(
            tuple(self._readiness.workloads(now)),
            tuple(self._holds.budgets(now)),
            tuple(self._holds.holds()),
            tuple(self._readiness.nodes[name] for name in sorted(self._readiness.nodes)),
            tuple((time, self._sums_at(moment)) for time, moment in self._series.points),
            self._readiness.workload_of_pods,
            self._readiness.top_of_workloads,
            self._sizes,
            self._start_ns,
            now,
        )

    def _take_in(self, writes: Sequence[Write]) -> None:
        readiness, disruptions, holds = self._readiness, self._disruptions, self._holds
        has_budgets, has_held = disruptions.has_budgets, holds.has_held
        for event, now, _, _ in writes:
            if now != self._now:
                self._sample()
                self._now = now
            object_, is_gone = event.stored.object, event.type == "DELETED"
            if isinstance(object_, Pod):
                if event.type == "ADDED":
                    self._sizes.pod_came(object_)
                readiness.pod_written(object_, now, is_gone=is_gone)
                if has_budgets:
                    disruptions.observe(event, now)
                if has_held:
                    holds.observe(event, now)
            elif isinstance(object_, Node):
                readiness.node_written(object_, now, is_gone=is_gone)
                if not is_gone:
                    self._sizes.node_changed(object_)
            else:
                disruptions.observe(event, now)
                has_budgets = disruptions.has_budgets
                readiness.written(event, now)
                holds.observe(event, now)

    def _pass_time(self, now: int) -> None:
        """Go on to a time; what is so before it has been so since the last time at which something happened."""
        if now != self._now:
            self._sample()
            self._now = now

    def _sample(self) -> None:
        """Take note of the sums as they are, after all that happens at this time."""
        usage, readiness, points = self._usage, self._readiness, self._series.points
        counts = (usage.node_count, readiness.ready, readiness.pending)
        moment = (counts, usage.level)
        if points:
            last = points[-1][1]
            # Where no count is another, shares may still be the same: they are rounded.
            if last[0] == counts and (last == moment or self._sums_at(last) == self._sums_at(moment)):
                return
        self._series.put(self._now, moment)

    def _sums_at(self, moment: _Moment) -> Sums:
        (nodes, ready, pending), level = moment
        return Sums(nodes, ready, pending, self._usage.shares_at(level))
