"""Comparison of a recorded cluster with its simulation.

Pods with their own names are matched by name. Pods of workloads have generated names and are matched by order: the
first pod of a workload with the first, and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.reading import read
from podium.api.times import seconds
from podium.sim.history import EventHistory
from podium.sim.recording.tape import EVICTED, Recording, workload_of
from podium.sim.results.result import spread
from podium.sim.scenario.steps import Apply
from podium.sim.simulation import Simulation

_BEHIND = {"Job": "CronJob", "ReplicaSet": "Deployment"}


@dataclass(frozen=True, slots=True)
class PodPlace:
    """The node of a pod (None if it got none), and its waiting time in seconds."""

    node: str | None
    wait: float | int | None


_NOWHERE = PodPlace(None, None)


@dataclass(frozen=True, slots=True)
class SideTotals:
    """Totals of one side: pods bound, preempted and evicted, and the waiting times of bound pods."""

    bindings: int
    preempted: int
    evicted: int
    waiting: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class RecordingComparison:
    """Both sides: `same` pods have the same node.

    The others are `differences`: their keys, or their workloads and numbers, with the recorded and simulated places.
    """

    recorded: SideTotals
    simulated: SideTotals
    same: int
    differences: tuple[tuple[str, PodPlace, PodPlace], ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "recorded": asdict(self.recorded),
            "simulated": asdict(self.simulated),
            "sameNode": self.same,
            "otherNode": [
                {
                    "pod": pod,
                    "recordedNode": recorded.node,
                    "recordedWait": recorded.wait,
                    "simulatedNode": simulated.node,
                    "simulatedWait": simulated.wait,
                }
                for pod, recorded, simulated in self.differences
            ],
        }


@dataclass(slots=True)
class _Side:
    """The pods of one side that were created or bound in the run, by their common names."""

    places: dict[str, PodPlace] = field(default_factory=dict)
    waits: list[int] = field(default_factory=list)
    _made: dict[str, int] = field(default_factory=dict)

    def name(self, pod: str, workload: str) -> str:
        """Return the common name of a new pod: its own, or its workload's and a number."""
        if not workload:
            return pod
        self._made[workload] = number = self._made.get(workload, 0) + 1
        return f"{workload} #{number}"

    def place(self, name: str, node: str, wait_ns: int) -> None:
        """Record the binding of a pod after a waiting time."""
        self.waits.append(wait_ns)
        self.places[name] = PodPlace(node, seconds(wait_ns))

    def sums(self, preempted: int, evicted: int) -> SideTotals:
        waits = sorted(self.waits)
        return SideTotals(len(waits), preempted, evicted, spread(waits) if waits else None)


def compare(recording: Recording, objects: Iterable[Kubernetes], simulation: Simulation) -> RecordingComparison:
    """Compare a recording with its simulation; `objects` are the initial ones."""
    applied = (step.change.object for step in simulation.scenario.steps if isinstance(step.change, Apply))
    there, recorded = _recorded(recording, [*applied, *objects])
    here, simulated = _simulated(simulation)
    # By name, pods of a workload by number.
    names = sorted(
        there.keys() | here.keys(), key=lambda name: (name.partition(" #")[0], int(name.partition(" #")[2] or 0))
    )
    pairs = [(name, there.get(name, _NOWHERE), here.get(name, _NOWHERE)) for name in names]
    differences = tuple(pair for pair in pairs if pair[1].node != pair[2].node)
    return RecordingComparison(recorded, simulated, len(pairs) - len(differences), differences)


def _recorded(recording: Recording, objects: Iterable[Kubernetes]) -> tuple[dict[str, PodPlace], SideTotals]:
    known = {(object_.kind, object_.key): object_ for object_ in objects}
    side = _Side()
    came: dict[str, tuple[str, int]] = {}
    counts = Counter(event.what for event in recording.events)
    for event in recording.events:
        # Applied objects get their identity from events. Of other objects only the owner matters.
        place = (event.kind, event.key)
        asked = known.get(place)
        if event.object is not None and (asked is None or asked.metadata.uid != event.uid):
            known[place] = read(event.object, Kubernetes)
        elif event.what == "created" and asked is not None:
            known[place] = replace(asked, metadata=replace(asked.metadata, uid=event.uid))
        if event.kind == "Pod" and event.what == "created":
            pod = None if event.object is None else known.get(("Pod", event.key))
            workload = None if pod is None else workload_of(pod, known)
            name = side.name(event.key, "" if workload is None else f"{workload.kind} {workload.key}")
            came[event.uid] = name, event.at_ns
            side.places[name] = _NOWHERE
        elif event.kind == "Pod" and event.what == "bound":
            name, came_ns = came.get(event.uid, (event.key, 0))
            side.place(name, event.node, event.at_ns - came_ns)
    return side.places, side.sums(counts["preempted"], counts["evicted"])


def _simulated(simulation: Simulation) -> tuple[dict[str, PodPlace], SideTotals]:
    side = _Side()
    history, start_ns = simulation.history, simulation.settings.start_ns
    created = {event.pod for event in history.events if event.reason == "Created"}
    timelines = history.timelines.values()
    in_order = sorted(timelines, key=lambda timeline: (timeline.created_ns, timeline.pod, timeline.uid))
    for timeline in in_order:
        is_new = timeline.created_ns >= start_ns and timeline.pod in created
        workload = _workload(timeline.made_by, history) if is_new else ""
        name = side.name(timeline.pod, workload)
        if timeline.bound_in_run and timeline.scheduled_ns is not None:
            side.place(name, timeline.node, timeline.scheduled_ns - max(timeline.created_ns, start_ns))
        elif is_new:
            side.places[name] = _NOWHERE
    preempted = sum(timeline.was_preempted for timeline in in_order)
    return side.places, side.sums(preempted, sum(timeline.disruption == EVICTED for timeline in in_order))


def _workload(made_by: str, history: EventHistory) -> str:
    """Return the workload above a pod's creator: ReplicaSets and Jobs are named after it."""
    kind, _, key = made_by.partition(" ")
    behind = _BEHIND.get(kind)
    above = key.rpartition("-")[0]
    return f"{behind} {above}" if behind is not None and history.has_seen(behind, above) else made_by
