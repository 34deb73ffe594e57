"""The result of a simulation with its final placement, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from podium.api import collector, errors, quantity
from podium.api.input.codec import Input
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.resource_requests import effective_spec, node_allocatable, pod_requests
from podium.app.answers import Frame, Kind, Renderable, flat, kinds
from podium.app.console.cells import by_key
from podium.sim.results.result import NodeStates, PodState, Result
from podium.sim.run import Progress, play_to_end, result_of_run
from podium.sim.run_options import RunOptions
from podium.sim.simulation import Simulation
from podium.store.store import Store

if TYPE_CHECKING:
    from podium.app.console.page import Page

_EVENT = {**kinds(number="time"), **kinds("reason pod node by message", "count"), **kinds(number="lastTime")}
_POD = {
    **kinds("pod uid workload", "priority"),
    **kinds("phase state node nominatedNode", number="createdAt scheduledAt startedAt endedAt"),
    **kinds("disruption evictedBy"),
}
_NODE = kinds("node marks", "podsBefore pods", "addedAt goneAt")
_SUMS = {**kinds(number="time"), **kinds(whole="nodes ready pending")}
_WORKLOAD = kinds(
    "workload", "wantedBefore wanted readyBefore lowestReady ready pending", "shortSeconds pendingSeconds"
)
_READINESS = {**kinds("workload", number="time"), **kinds(whole="ready wanted")}


def frame_of(result: Result, name: str) -> Frame:
    """Return a table by name: see `SimulationResult.frame`. Raises PodiumError for an unknown name."""
    if name not in _TABLES:
        raise errors.PodiumError(f"a simulation has no table {name}; it has: {', '.join(_TABLES)}")
    columns, rows = _TABLES[name]
    return Frame.of_rows(name, [flat(row) for row in rows(result)], columns)


_TABLES: dict[str, tuple[Mapping[str, Kind], Callable[[Result], Iterable[dict[str, Any]]]]] = {
    "events": (_EVENT, lambda result: (event.to_dict() for event in result.events)),
    "pods": (_POD, lambda result: result.pods),
    "nodes": (_NODE, lambda result: (node.to_dict() for node in result.nodes)),
    "series": (_SUMS, lambda result: result.measures.to_dict()["series"]),
    "workloads": (
        _WORKLOAD,
        lambda result: (
            {name: value for name, value in workload.items() if name != "series"}
            for workload in result.measures.to_dict()["workloads"]
        ),
    ),
    "readiness": (
        _READINESS,
        lambda result: (
            {"workload": workload["workload"], **point}
            for workload in result.measures.to_dict()["workloads"]
            for point in workload["series"]
        ),
    ),
}


MOST_NODES = 20
"""The maximum number of nodes for which pods are kept."""
MOST_PODS = 8
"""The maximum number of pods kept for a node, the most important first."""


class ListedPod(Struct, frozen=True):
    """A pod on a node, and its requests: cpu in milli, other resources in whole units."""

    key: str
    priority: int
    state: PodState
    requests: Mapping[str, int]


class FilledNode(Struct, frozen=True):
    """A node with its unusual states (`marks`), allocatable resources, requested cpu, and most important pods."""

    name: str
    marks: tuple[str, ...]
    offered: Mapping[str, int]
    cpu_milli: int
    pods: tuple[ListedPod, ...]
    further_pods: int

    @property
    def cpu_percent(self) -> int:
        """The requested share of its cpu in whole percent, rounded down."""
        return self.percent(quantity.CPU, self.cpu_milli)

    def percent(self, resource: str, amount: int) -> int:
        """Return the amount in whole percent of the allocatable one; 100 if that is 0 and the amount is not."""
        offered = self.offered.get(resource, 0)
        return 100 * amount // offered if offered else 100 * bool(amount)


def placement_of(
    store: Store, states: NodeStates, requested: Mapping[str, Mapping[str, int]]
) -> tuple[FilledNode, ...]:
    """Return the nodes in name order, with the pods on them that have not ended, and what these have ``requested``."""
    live = (pod for pod in store.typed(Pod) if pod.spec.node_name and not pod.is_terminal)
    pods = by_key((pod.spec.node_name, pod) for pod in live)
    nodes = {node.key: node for node in store.typed(Node)}
    is_detailed = len(nodes) <= MOST_NODES
    found = []
    for name, node in sorted(nodes.items(), key=lambda item: item[0]):
        on_node = pods.get(name, [])
        first = sorted(on_node, key=lambda pod: (-pod.priority, pod.key))[:MOST_PODS] if is_detailed else []
        marks, offered = states.marks(name) if is_detailed else (), node_allocatable(node.status)
        shown = tuple(
            ListedPod(pod.key, pod.priority, states.state_of(pod), pod_requests(effective_spec(pod))) for pod in first
        )
        further = len(on_node) - len(first)
        found.append(FilledNode(name, marks, offered, requested[name].get(quantity.CPU, 0), shown, further))
    return tuple(found)


@dataclass(frozen=True, slots=True, repr=False)
class SimulationResult(Renderable, Result):
    """A simulation's `Result` with the final `placement` of pods, for display.

    `with_reasons` runs the simulation again and also records the reasons for placements; None if this result has them.
    """

    placement: tuple[FilledNode, ...] = ()
    with_reasons: Callable[[], SimulationResult] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, result: Result) -> SimulationResult:
        """Return a result without a placement."""
        return cls(**{each.name: getattr(result, each.name) for each in fields(Result)})

    @property
    def headline(self) -> str:
        """The result of the run in one line."""
        from podium.app.simulating.text import headline_of

        return headline_of(self)

    def write(self, page: Page) -> None:
        from podium.app.simulating.text import write_simulation

        write_simulation(page, self, every_event=False)

    def _with_pictures(self) -> SimulationResult:
        return self if self.with_reasons is None else self.with_reasons()

    def frame(self, name: str) -> Frame:
        """Return a table of the result. Raises PodiumError for an unknown name.

        - `events`: `time`, `reason`, `pod`, `node`, `by`, `message`, `count`, `lastTime`.
        - `pods`: `pod`, `uid`, `workload`, `priority`, `phase`, `state`, `node`, `nominatedNode`, `createdAt`,
          `scheduledAt`, `startedAt`, `endedAt`, `disruption`, `evictedBy`.
        - `nodes`, at the end: `node`, `marks` with commas between them, `podsBefore`, `pods`, `addedAt`, `goneAt`, and
          `requested.RESOURCE`: cpu in milli, other resources in whole units.
        - `series`, a row for each time at which something changes: `time`, `nodes`, `ready`, `pending`, and
          `requested.RESOURCE`, a share between 0 and 1.
        - `workloads`: `workload`, pods wanted and ready, `shortSeconds`, `pendingSeconds`.
        - `readiness`, a row for each workload and time: `workload`, `time`, `ready`, `wanted`.

        Times are seconds since the start, negative before it; None where something has not happened.
        """
        return frame_of(self, name)


def shown_result(
    found: Input, simulation: Simulation, options: RunOptions, *, is_brief: bool = False
) -> SimulationResult:
    """Return the result of a simulation so far; a brief one has no placement."""
    result = result_of_run(found, simulation, options, is_brief=is_brief)
    if is_brief:
        return SimulationResult.of(result)
    states = NodeStates(simulation.store, simulation.control_plane.is_down)
    recording = replace(options, on_attempt=None, records_placements=True)
    with_reasons = None if options.records_placements else partial(play_shown, found, recording)
    placement = placement_of(simulation.store, states, {node.node: node.requested for node in result.nodes})
    return replace(SimulationResult.of(result), placement=placement, with_reasons=with_reasons)


def play_shown(found: Input, options: RunOptions, progress: Progress | None = None) -> SimulationResult:
    """Run an input and return the result. Raises as `podium.sim.run.play` does."""
    with collector.collector_paused():
        return shown_result(found, play_to_end(found, options, progress), options)
