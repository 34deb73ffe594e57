"""The result of a simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from podium.api.basis import Caveat
from podium.api.node import Node, is_ready
from podium.api.pod import Pod
from podium.api.resource_requests import effective_spec, pod_requests
from podium.api.times import seconds
from podium.api.workloads import DaemonSet, Job, ReplicaSet, ReplicationController, StatefulSet
from podium.cluster.pods import PREEMPTED
from podium.controllers.ledger.disruption import Disruption
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.controllers.scheduling.scheduler import Scheduler
from podium.controllers.workloads.owned_pods import label_of
from podium.controllers.workloads.workload_controller import FAILED_CREATE
from podium.plugins.gang_scheduling import TOO_FEW
from podium.sim.history import EventHistory, PodTimeline, SimEvent
from podium.sim.placement_log import PlacementGrounds
from podium.sim.results.disruption_state import DISRUPTION_KINDS, DisruptionState, JSONValue, disruption_state
from podium.sim.results.measures import Measures
from podium.sim.results.readiness import desired_pods
from podium.sim.simulation import Simulation
from podium.store.errors import reason_of
from podium.store.store import Store

if TYPE_CHECKING:
    from podium.sim.recording.comparison import RecordingComparison


class FinalNode(JSONValue, frozen=True, kw_only=True):
    """A node at the end: `marks` (down, not ready, cordoned, gone), its pods, and their requests.

    `pods_before` and `pods` exclude DaemonSets; cpu is in milli, others in units. `added_at` is None for an initial
    node, `gone_at` for one that still exists; both are in seconds.
    """

    node: str
    marks: tuple[str, ...]
    pods_before: int
    pods: int
    added_at: int | float | None
    gone_at: int | float | None
    requested: dict[str, int]


def final_nodes(pods: Iterable[Pod], measures: Measures, states: NodeStates) -> tuple[FinalNode, ...]:
    """Return all nodes, by name, with the requests of these pods."""
    requested: dict[str, dict[str, int]] = {}
    for pod in pods:
        if pod.spec.node_name and not pod.is_terminal:
            sums = requested.setdefault(pod.spec.node_name, {})
            for name, amount in pod_requests(effective_spec(pod)).items():
                sums[name] = sums.get(name, 0) + amount
    return tuple(
        FinalNode(
            node=life.name,
            marks=states.marks(life.name),
            pods_before=life.pods_before,
            pods=life.pods,
            added_at=None if life.was_there else seconds(life.added_ns - measures.start_ns),
            gone_at=None if life.gone_ns is None else seconds(life.gone_ns - measures.start_ns),
            requested=dict(sorted(requested.get(life.name, {}).items())),
        )
        for life in measures.nodes
    )


PodState = Literal[
    "ready", "running", "starting", "pending", "lost", "terminating", "succeeded", "failed", "terminated"
]
"""The state of a pod.

`ready`: running and ready. `running`: running but not ready. `starting`: bound, not running yet. `pending`: without a
node. `lost`: its node is down, not ready or gone, so that its state is unknown. `terminating`: being deleted.
`succeeded`, `failed`: has ended. `terminated`: was deleted before it ended."""

POD_STATES: tuple[PodState, ...] = get_args(PodState)


class NodeStates:
    """The present states of nodes. ``is_down`` returns whether a node's machine has stopped."""

    def __init__(self, store: Store, is_down: Callable[[str], bool]) -> None:
        self._is_down = is_down
        self._nodes = {node.metadata.name: node for node in store.typed(Node)}
        self._ready = {name for name, node in self._nodes.items() if is_ready(node)}

    def marks(self, node: str) -> tuple[str, ...]:
        """Return what is unusual about a node: gone, down, not ready, cordoned."""
        found = self._nodes.get(node)
        if found is None:
            return ("gone",)
        unwell = "down" if self._is_down(node) else "" if node in self._ready else "not ready"
        return tuple(mark for mark in (unwell, "cordoned" if found.spec.unschedulable else "") if mark)

    def state_of(self, pod: Pod) -> PodState:
        if pod.is_terminal:
            return "succeeded" if pod.status.phase == "Succeeded" else "failed"
        if pod.is_terminating:
            return "terminating"
        name = pod.spec.node_name
        if not name:
            return "pending"
        if name not in self._ready or self._is_down(name):
            return "lost"
        if pod.status.phase != "Running":
            return "starting"
        return "ready" if pod.is_ready else "running"


SCHEMA_VERSION = 1
"""The version of the result's JSON; it increases when a key changes its meaning or is removed."""


@dataclass(frozen=True, slots=True)
class Result:
    """The events in order, all pods by key and creation (deleted ones included), and the sums.

    `caveats` are the caveats. `pods` entries have `pod, uid, workload, priority, phase, state, node, nominatedNode,
    createdAt, scheduledAt, startedAt, endedAt, disruption, evictedBy`: times in seconds from the start (negative before
    it), null if it has not happened or is unknown. `nodes` and `disruptions` (budgets, caps, quotas, avoid lists) are
    as of the end. `held` says why pods are held before any attempt, by key. `ledger` has a record of each disruption,
    in order. JSON omits the last three if empty. `placements` say why pods are where they are, by uid, if requested;
    `placements_left_out` counts attempts without; neither is in JSON. `latency_ns` is how long requests took
    (`podium.sim.latencies`), drawn around that if `draws_latencies`. `recorded` compares a recording with its
    simulation.

    A brief result (`is_brief`) has only the pods that are not ready at the end or that an event names: all that two
    runs of one cluster can differ in. It has no sums of pods, no requests of nodes and no `disruptions`, and no JSON.
    """

    events: list[SimEvent]
    pods: list[dict[str, Any]]
    summary: dict[str, Any]
    caveats: tuple[Caveat, ...] = ()
    disruptions: DisruptionState = field(default_factory=DisruptionState)
    recorded: RecordingComparison | None = None
    measures: Measures = field(default_factory=Measures)
    nodes: tuple[FinalNode, ...] = ()
    held: Mapping[str, str] = field(default_factory=dict)
    ledger: tuple[Disruption, ...] = ()
    placements: Mapping[str, PlacementGrounds] = field(default_factory=dict)
    placements_left_out: int = 0
    latency_ns: int = 0
    draws_latencies: bool = False
    is_brief: bool = False

    def to_dict(self) -> dict[str, Any]:
        return self.json_value() | {"events": [event.to_dict() for event in self.events]}

    def json_value(self) -> dict[str, Any]:
        """Return `to_dict` with the events as Structs, which take less memory and have the same JSON."""
        if self.is_brief:
            raise ValueError("a brief result has no JSON")
        found: dict[str, Any] = {
            "schemaVersion": SCHEMA_VERSION,
            "events": self.events,
            "pods": self.pods,
            "summary": self.summary,
            "nodes": [node.to_dict() for node in self.nodes],
            **self.measures.to_dict(),
            "latencies": {"seconds": seconds(self.latency_ns), "drawn": self.draws_latencies},
        }
        if self.disruptions:
            found["disruptions"] = self.disruptions.to_dict()
        if self.held:
            found["held"] = dict(self.held)
        if self.ledger:
            found["ledger"] = [record.to_dict() for record in self.ledger]
        if self.recorded is not None:
            found["recorded"] = self.recorded.to_dict()
        return found | {"caveats": [caveat.to_dict() for caveat in self.caveats]}


def result_of(
    simulation: Simulation,
    caveats: tuple[Caveat, ...] = (),
    recorded: RecordingComparison | None = None,
    *,
    is_brief: bool = False,
) -> Result:
    """Return the result of a simulation so far, with caveats and a comparison."""
    store, events, timelines = simulation.store, simulation.history.events, list(simulation.history.timelines.values())
    if is_brief:
        named = {name for event in events for name in (event.pod, event.by)}
        ready = simulation.meters.readiness.ready_pods()
        timelines = [timeline for timeline in timelines if timeline.uid not in ready or timeline.pod in named]
        pods = [pod for timeline in timelines if isinstance(pod := store.reading("Pod", timeline.pod), Pod)]
    else:
        pods = store.typed(Pod)
    in_order = sorted(enumerate(timelines), key=lambda item: (item[1].pod, item[0]))
    nodes = NodeStates(store, simulation.control_plane.is_down)
    # How deleted pods ended, and the states of the others, by uid.
    ends: dict[str, PodState] = {"Succeeded": "succeeded", "Failed": "failed"}
    states = {timeline.uid: ends.get(timeline.phase, "terminated") for timeline in timelines}
    states |= {pod.metadata.uid: nodes.state_of(pod) for pod in pods}
    measures, summary = simulation.meters.measures(simulation.now), _summary(simulation, timelines)
    if not is_brief:
        counts = Counter(states.values())
        summary["pods"] = {"total": len(timelines), **{state: counts[state] for state in POD_STATES}}
    limiting = (stored.object for kind in (() if is_brief else DISRUPTION_KINDS) for stored in store.objects(kind))
    return Result(
        events=events,
        pods=[_pod(timeline, states[timeline.uid], measures) for _, timeline in in_order],
        summary=summary,
        caveats=caveats,
        disruptions=disruption_state(limiting, simulation.now, simulation.meters.disruptions),
        recorded=recorded,
        measures=measures,
        nodes=final_nodes([] if is_brief else pods, measures, nodes),
        held=held_pods(simulation),
        ledger=tuple(simulation.history.disruptions.values()),
        placements={} if simulation.placements is None else simulation.placements.found,
        latency_ns=simulation.settings.latency_ns,
        draws_latencies=simulation.settings.latency_ns > 0 and simulation.settings.latency_seed is not None,
        placements_left_out=0 if simulation.placements is None else simulation.placements.left_out,
        is_brief=is_brief,
    )


def _pod(timeline: PodTimeline, state: PodState, measures: Measures) -> dict[str, Any]:
    def since_start(time_ns: int | None) -> int | float | None:
        return None if time_ns is None else seconds(time_ns - measures.start_ns)

    return {
        "pod": timeline.pod,
        "uid": timeline.uid,
        "workload": measures.workload_of[timeline.uid],
        "priority": timeline.priority,
        "phase": timeline.phase,
        "state": state,
        "node": timeline.node or None,
        "nominatedNode": timeline.nominated_node or None,
        "createdAt": since_start(timeline.created_ns),
        "scheduledAt": since_start(timeline.scheduled_ns),
        "startedAt": since_start(timeline.started_ns),
        "endedAt": since_start(timeline.ended_ns),
        "disruption": timeline.disruption or None,
        "evictedBy": timeline.evicted_by or None,
    }


def _summary(simulation: Simulation, timelines: list[PodTimeline]) -> dict[str, Any]:
    failed_attempts = sum([event.count for event in simulation.history.events if event.reason == "FailedScheduling"])
    usage = simulation.meters.usage(simulation.now)
    disruptions = Counter([timeline.disruption for timeline in timelines if timeline.disruption])
    evicted_by = Counter([timeline.evicted_by for timeline in timelines if timeline.evicted_by])
    return {
        "end": seconds(simulation.elapsed_ns),
        "pods": {},
        "preempted": disruptions[PREEMPTED],
        "disruptions": dict(sorted(disruptions.items())),
        "evictedBy": dict(sorted(evicted_by.items())),
        "bindings": sum([timeline.bound_in_run for timeline in timelines]),
        "attempts": simulation.bind_attempts + failed_attempts,
        "waiting": _waiting(timelines, simulation.settings.start_ns),
        "use": usage.shares(),
        "nodeHours": usage.node_hours,
        "short": _shortfalls(simulation.store, simulation.history),
        "drains": [
            {
                "node": report.node,
                # running, blocked, drained, refused, timed-out or withdrawn
                "state": report.state,
                "message": report.message or None,
                "pods": [
                    {"pod": pod.pod, "state": pod.state, "reason": pod.reason or None, "tries": pod.tries}
                    for pod in report.pods
                ],
            }
            for report in simulation.player.drain_reports()
        ],
    }


def _waiting(timelines: list[PodTimeline], start_ns: int) -> list[dict[str, Any]]:
    """Return the waiting times of pods bound in the run, since creation or the start, highest priority first."""
    times: dict[int, list[int]] = {}
    for timeline in timelines:
        if timeline.bound_in_run and timeline.scheduled_ns is not None:
            times.setdefault(timeline.priority, []).append(timeline.scheduled_ns - max(timeline.created_ns, start_ns))
    return [{"priority": priority, **spread(sorted(times[priority]))} for priority in sorted(times, reverse=True)]


def held_pods(simulation: Simulation) -> dict[str, str]:
    """Return why pods are held before any attempt, by key: gates, or their group. Conditions do not show all."""
    controllers = (component.controller for component in simulation.runtime.components)
    found: dict[str, str] = {}
    for scheduler in (each for each in controllers if isinstance(each, Scheduler)):
        groups = scheduler.cluster.pod_groups
        for queued in (queued for queued in scheduler.queue if queued.place is QueuePlace.GATED):
            found[queued.record.key] = queued.message
            group = groups.of(queued.record)
            if group is not None and queued.message == TOO_FEW:
                there = f"{groups.live(group.key):,} of {group.min_count:,} of {group.key} are there"
                found[queued.record.key] = f"{queued.message}: {there}"
    return dict(sorted(found.items()))


def spread(times: list[int]) -> dict[str, Any]:
    """Return count, mean, and percentiles (nearest rank) in seconds; `times` are sorted nanoseconds, not empty."""
    count = len(times)
    median, high = (times[-(-count * percent // 100) - 1] for percent in (50, 95))
    return {
        "count": count,
        "mean": seconds(round(sum(times) / count)),
        "p50": seconds(median),
        "p95": seconds(high),
        "max": seconds(times[-1]),
    }


_KINDS = (DaemonSet, Job, ReplicaSet, ReplicationController, StatefulSet)
# The field of the status that counts a workload's pods, if it is not `replicas`.
_COUNTED = {"DaemonSet": "currentNumberScheduled", "Job": "active"}


def _shortfalls(store: Store, history: EventHistory) -> list[dict[str, Any]]:
    """Return the workloads that lack pods at the end because some were refused, by name."""
    reasons = {event.by: event.message for event in history.events if event.reason == FAILED_CREATE}
    found = []
    for stored in (found for kind in _KINDS for found in store.objects(kind.__name__) if reasons):
        label = label_of(stored.object)
        wants, has = desired_pods(stored), stored.raw.get("status", {}).get(_COUNTED.get(stored.kind, "replicas"), 0)
        if label in reasons and has < wants:
            found.append({"workload": label, "wants": wants, "has": has, "reason": reason_of(reasons[label])})
    return sorted(found, key=lambda shortfall: shortfall["workload"])
