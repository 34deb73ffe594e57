"""What is measured over a run: readiness by workload, what budgets held, the life of nodes, and sums over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from podium.machines.actions import Action, Evict
from podium.machines.observations import Problem
from podium.sim.backlog import Backlog
from podium.sim.results.disruption_counts import DisruptionCounts
from podium.sim.results.holds import BudgetHealth, Hold, Holds
from podium.sim.results.readiness import NodeLife, Readiness, WorkloadReadiness
from podium.sim.results.series import Series
from podium.sim.results.sizes import Sizes
from podium.sim.results.usage import Usage
from podium.sim.sim_event import seconds
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store


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

    def __init__(self, start_ns: int, store: Store) -> None:
        self._start_ns = start_ns
        self._store = store
        self._usage = Usage(start_ns)
        self._disruptions = DisruptionCounts()
        self._readiness = Readiness(start_ns)
        self._holds = Holds()
        self._series: Series[Sums] = Series()
        self._sizes = Sizes()
        # Writes, or None for what is to be sampled, with their times.
        self._backlog: Backlog[WatchEvent | None, int] = Backlog(self._take_in)

    @property
    def disruptions(self) -> DisruptionCounts:
        """How often the pods of each budget were disrupted."""
        self._backlog.clear()
        return self._disruptions

    def observe(self, event: WatchEvent, now: int) -> None:
        """Take in a write."""
        self._backlog.put(event, now)

    def start(self) -> None:
        """All that was there before the run has been taken in."""
        self._backlog.clear()
        self._readiness.start()

    def answered(self, action: Action, problem: Problem | None, now: int) -> None:
        """Take in how an action of a component ended."""
        if isinstance(action, Evict):
            self._backlog.clear()
            self._holds.answered(action, problem, self._store, now)

    def power(self, node: str, now: int, *, is_up: bool) -> None:
        """A node's machine stops or starts."""
        self._backlog.clear()
        self._readiness.power(node, now, is_up=is_up)

    def sample(self, now: int) -> None:
        """Take note of the sums as they are at `now`, after all that happens then."""
        self._backlog.put(None, now)

    def usage(self, now: int) -> Usage:
        """How much of the cluster was requested up to now."""
        self._backlog.clear()
        self._usage.pass_time(now)
        return self._usage

    def measures(self, now: int) -> Measures:
        """What was measured up to now."""
        self.sample(now)
        self._backlog.clear()
        return Measures(
            tuple(self._readiness.workloads(now)),
            tuple(self._holds.budgets(now)),
            tuple(self._holds.holds()),
            tuple(self._readiness.nodes[name] for name in sorted(self._readiness.nodes)),
            tuple(self._series.points),
            self._readiness.workload_of_pods,
            self._readiness.top_of_workloads,
            self._sizes,
            self._start_ns,
            now,
        )

    def _take_in(self, event: WatchEvent | None, now: int) -> None:
        if event is not None:
            self._usage.observe(event, now)
            self._disruptions.observe(event, now)
            self._readiness.observe(event, now)
            self._holds.observe(event, now)
            self._sizes.observe(event)
            return
        usage, readiness = self._usage, self._readiness
        self._series.put(now, Sums(usage.node_count, readiness.ready, readiness.pending, usage.requested_shares()))
