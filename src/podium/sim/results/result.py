"""What came of a simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from podium.api.basis import Caveat
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.cluster.pods import PREEMPTED
from podium.machines.disruption.drain import DrainReport
from podium.machines.ledger.disruption import Disruption
from podium.sim.placement_log import PlacementGrounds
from podium.sim.pod_story import PodStory
from podium.sim.results.disruption_state import DISRUPTION_KINDS, DisruptionState, disruption_state
from podium.sim.results.final_nodes import FinalNode, final_nodes
from podium.sim.results.held import held_pods
from podium.sim.results.measures import Measures
from podium.sim.results.pod_states import POD_STATES, NodeStates, PodState
from podium.sim.results.shortfalls import shortfalls
from podium.sim.results.waits import spread
from podium.sim.sim_event import SimEvent, seconds
from podium.sim.simulation import Simulation

if TYPE_CHECKING:
    from podium.sim.recording.comparison import Comparison


SCHEMA_VERSION = 1
"""The version of the JSON of results: it grows when a key changes its meaning or goes, not when one is added."""


@dataclass(frozen=True, slots=True)
class Result:
    """The events in their order, the pods by key and creation, those that are gone included, and the sums.

    `rests_on` says what the run could not know or did not do.

    `pods` entries have `pod, uid, workload, priority, phase, state, node, nominatedNode, createdAt, scheduledAt,
    startedAt, endedAt, disruption, evictedBy`: the times in seconds from the start (negative before it), null where it
    has not happened or is not known. `measures` is what was measured on the way, `nodes` how nodes were at the end.
    `disruptions` tells of budgets, caps, quotas and avoid lists at the end; JSON leaves it out where there are none.
    `held` says of pods, by key, why they are held before any attempt at them; JSON leaves it out where there are none.
    `ledger` has a record of each disruption, in their order; JSON leaves it out where there was none.
    `placements` say why pods are where they are, by uid, as far as that was asked for, and `placements_left_out` counts
    attempts of which nothing was taken down; neither is in JSON.
    `recorded` holds a run of what was recorded against what happened there; None, and left out, for all others.
    """

    events: list[SimEvent]
    pods: list[dict[str, Any]]
    summary: dict[str, Any]
    rests_on: tuple[Caveat, ...] = ()
    disruptions: DisruptionState = field(default_factory=DisruptionState)
    recorded: Comparison | None = None
    measures: Measures = field(default_factory=Measures)
    nodes: tuple[FinalNode, ...] = ()
    held: Mapping[str, str] = field(default_factory=dict)
    ledger: tuple[Disruption, ...] = ()
    placements: Mapping[str, PlacementGrounds] = field(default_factory=dict)
    placements_left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON shows it."""
        found: dict[str, Any] = {
            "schemaVersion": SCHEMA_VERSION,
            "events": [event.to_dict() for event in self.events],
            "pods": self.pods,
            "summary": self.summary,
            "nodes": [node.to_dict() for node in self.nodes],
            **self.measures.to_dict(),
        }
        if self.disruptions:
            found["disruptions"] = self.disruptions.to_dict()
        if self.held:
            found["held"] = dict(self.held)
        if self.ledger:
            found["ledger"] = [record.to_dict() for record in self.ledger]
        if self.recorded is not None:
            found["recorded"] = self.recorded.to_dict()
        return found | {"restsOn": [caveat.to_dict() for caveat in self.rests_on]}


def result_of(simulation: Simulation, rests_on: tuple[Caveat, ...] = (), recorded: Comparison | None = None) -> Result:
    """The result of a simulation as far as it has come, what it rests on, and what it is held against."""
    stories = list(simulation.history.stories.values())
    in_order = sorted(enumerate(stories), key=lambda item: (item[1].pod, item[0]))
    states = _states(simulation, stories)
    measures = simulation.meters.measures(simulation.now)
    return Result(
        events=simulation.history.events,
        pods=[_pod(story, states[story.uid], measures) for _, story in in_order],
        summary=_summary(simulation, stories, Counter(states.values())),
        rests_on=rests_on,
        disruptions=disruption_state(_objects(simulation), simulation.now, simulation.meters.disruptions),
        recorded=recorded,
        measures=measures,
        nodes=final_nodes(simulation.store, measures, simulation.control_plane.is_down),
        held=held_pods(simulation),
        ledger=tuple(simulation.account.records),
        placements={} if simulation.placements is None else simulation.placements.found,
        placements_left_out=0 if simulation.placements is None else simulation.placements.left_out,
    )


def _objects(simulation: Simulation) -> Iterator[Kubernetes]:
    """What is there at the end that has to do with disruptions."""
    for kind in DISRUPTION_KINDS:
        yield from (stored.object for stored in simulation.store.objects(kind))


def _states(simulation: Simulation, stories: list[PodStory]) -> dict[str, PodState]:
    """What each pod is doing, by uid; of one that is gone, how it ended."""
    nodes = NodeStates(simulation.store, simulation.control_plane.is_down)
    ends: dict[str, PodState] = {"Succeeded": "succeeded", "Failed": "failed"}
    states = {story.uid: ends.get(story.phase, "terminated") for story in stories}
    for stored in simulation.store.objects("Pod"):
        if isinstance(stored.object, Pod):
            states[stored.uid] = nodes.state_of(stored.object)
    return states


def _pod(story: PodStory, state: PodState, measures: Measures) -> dict[str, Any]:
    start_ns = measures.start_ns
    scheduled_ns, started_ns, ended_ns = story.scheduled_ns, story.started_ns, story.ended_ns
    return {
        "pod": story.pod,
        "uid": story.uid,
        "workload": measures.workload_of[story.uid],
        "priority": story.priority,
        "phase": story.phase,
        "state": state,
        "node": story.node or None,
        "nominatedNode": story.nominated_node or None,
        "createdAt": seconds(story.created_ns - start_ns),
        "scheduledAt": None if scheduled_ns is None else seconds(scheduled_ns - start_ns),
        "startedAt": None if started_ns is None else seconds(started_ns - start_ns),
        "endedAt": None if ended_ns is None else seconds(ended_ns - start_ns),
        "disruption": story.disruption or None,
        "evictedBy": story.evicted_by or None,
    }


def _summary(simulation: Simulation, stories: list[PodStory], states: Counter[PodState]) -> dict[str, Any]:
    failed_attempts = sum([event.count for event in simulation.history.events if event.reason == "FailedScheduling"])
    usage = simulation.meters.usage(simulation.now)
    disruptions = Counter([story.disruption for story in stories if story.disruption])
    return {
        "end": seconds(simulation.elapsed_ns),
        "pods": {
            "total": len(stories),
            **{state: states[state] for state in POD_STATES},
        },
        "preempted": disruptions[PREEMPTED],
        "disruptions": dict(sorted(disruptions.items())),
        "evictedBy": dict(sorted(Counter([story.evicted_by for story in stories if story.evicted_by]).items())),
        "bindings": sum([story.bound_in_run for story in stories]),
        "attempts": simulation.bind_attempts + failed_attempts,
        "waiting": _waiting(stories, simulation.settings.start_ns),
        "use": usage.shares(),
        "nodeHours": usage.node_hours,
        "short": [asdict(shortfall) for shortfall in shortfalls(simulation.store, simulation.history)],
        "drains": [_drain(report) for report in simulation.control_plane.drain_reports()],
    }


def _drain(report: DrainReport) -> dict[str, Any]:
    """How far a drain came: `state` is running, blocked, drained, refused, timed-out or withdrawn."""
    pods = [
        {"pod": pod.pod, "state": pod.state, "reason": pod.reason or None, "tries": pod.tries} for pod in report.pods
    ]
    return {"node": report.node, "state": report.state, "message": report.message or None, "pods": pods}


def _waiting(stories: list[PodStory], start_ns: int) -> list[dict[str, Any]]:
    """How long the pods bound in the run had waited since their creation or the start, highest priority first."""
    times: dict[int, list[int]] = {}
    for story in stories:
        if story.bound_in_run and story.scheduled_ns is not None:
            times.setdefault(story.priority, []).append(story.scheduled_ns - max(story.created_ns, start_ns))
    return [{"priority": priority, **spread(sorted(times[priority]))} for priority in sorted(times, reverse=True)]
