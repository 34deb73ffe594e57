"""What a recorded cluster did, held against what a simulation does with the same.

Pods that have a name of their own are the same by that. Those that workloads make have other names here and there: the
first that a workload made is held against the first, and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.reading import read
from podium.sim.history import History
from podium.sim.recording.authors import workload_of
from podium.sim.recording.tape import EVICTED, RecordedEvent, Recording
from podium.sim.results.waits import spread
from podium.sim.scenario.changes import Apply
from podium.sim.sim_event import seconds
from podium.sim.simulation import Simulation

_BEHIND = {"Job": "CronJob", "ReplicaSet": "Deployment"}


@dataclass(frozen=True, slots=True)
class PodPlace:
    """Where a pod was placed, None for nowhere, and how many seconds after it was there."""

    node: str | None
    wait: float | int | None


_NOWHERE = PodPlace(None, None)


@dataclass(frozen=True, slots=True)
class PodDifference:
    """A pod that was placed elsewhere here than there; `pod` is its key, or its workload and its number there."""

    pod: str
    recorded: PodPlace
    simulated: PodPlace

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain values."""
        return {
            "pod": self.pod,
            "recordedNode": self.recorded.node,
            "recordedWait": self.recorded.wait,
            "simulatedNode": self.simulated.node,
            "simulatedWait": self.simulated.wait,
        }


@dataclass(frozen=True, slots=True)
class Sums:
    """What came of it on one side: how many pods were bound and preempted, and how long those bound had waited."""

    bindings: int
    preempted: int
    evicted: int
    waiting: dict[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        """The sums as plain values."""
        return {
            "bindings": self.bindings,
            "preempted": self.preempted,
            "evicted": self.evicted,
            "waiting": self.waiting,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides: `same` pods have the same node, the others are `differences`, sorted by name."""

    recorded: Sums
    simulated: Sums
    same: int
    differences: tuple[PodDifference, ...]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return {
            "recorded": self.recorded.to_dict(),
            "simulated": self.simulated.to_dict(),
            "sameNode": self.same,
            "otherNode": [difference.to_dict() for difference in self.differences],
        }


@dataclass(slots=True)
class _Side:
    """The pods of one side that came or were bound in the run, by what they are called on both."""

    places: dict[str, PodPlace] = field(default_factory=dict)
    waits: list[int] = field(default_factory=list)
    _made: dict[str, int] = field(default_factory=dict)

    def name(self, pod: str, workload: str) -> str:
        """What a pod that comes is called: by its own name, or by its workload's and a number."""
        if not workload:
            return pod
        self._made[workload] = number = self._made.get(workload, 0) + 1
        return f"{workload} #{number}"

    def place(self, name: str, node: str, wait_ns: int) -> None:
        """A pod was bound to a node so long after it came."""
        self.waits.append(wait_ns)
        self.places[name] = PodPlace(node, seconds(wait_ns))

    def sums(self, preempted: int, evicted: int) -> Sums:
        """What came of it."""
        waits = sorted(self.waits)
        return Sums(len(waits), preempted, evicted, spread(waits) if waits else None)


def compare(recording: Recording, objects: Iterable[Kubernetes], simulation: Simulation) -> Comparison:
    """Hold a recording against a run of it; `objects` are those from the start."""
    applied = (step.change.object for step in simulation.scenario.steps if isinstance(step.change, Apply))
    there, recorded = _recorded(recording, [*applied, *objects])
    here, simulated = _simulated(simulation)
    names = sorted(there.keys() | here.keys(), key=_in_order)
    pairs = [(name, there.get(name, _NOWHERE), here.get(name, _NOWHERE)) for name in names]
    differences = tuple(PodDifference(*pair) for pair in pairs if pair[1].node != pair[2].node)
    return Comparison(recorded, simulated, len(pairs) - len(differences), differences)


def _in_order(name: str) -> tuple[str, int]:
    """By name; those of a workload by their number."""
    workload, _, number = name.partition(" #")
    return workload, int(number or 0)


def _recorded(recording: Recording, objects: Iterable[Kubernetes]) -> tuple[dict[str, PodPlace], Sums]:
    known = {(object_.kind, object_.key): object_ for object_ in objects}
    side = _Side()
    came: dict[str, tuple[str, int]] = {}
    counts = Counter(event.what for event in recording.events)
    for event in recording.events:
        _note(known, event)
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


def _note(known: dict[tuple[str, str], Kubernetes], event: RecordedEvent) -> None:
    """Take in what an event tells of an object: what a step has asked for got its identity there."""
    place = (event.kind, event.key)
    asked = known.get(place)
    if event.object is not None and (asked is None or asked.metadata.uid != event.uid):
        # Whom it belongs to is all that matters of it.
        known[place] = read(event.object, Kubernetes)
    elif event.what == "created" and asked is not None:
        known[place] = replace(asked, metadata=replace(asked.metadata, uid=event.uid))


def _simulated(simulation: Simulation) -> tuple[dict[str, PodPlace], Sums]:
    side = _Side()
    history, start_ns = simulation.history, simulation.settings.start_ns
    created = {event.pod for event in history.events if event.reason == "Created"}
    in_order = sorted(history.stories.values(), key=lambda story: (story.created_ns, story.pod, story.uid))
    for story in in_order:
        is_new = story.created_ns >= start_ns and story.pod in created
        workload = _workload(story.made_by, history) if is_new else ""
        name = side.name(story.pod, workload)
        if story.bound_in_run and story.scheduled_ns is not None:
            side.place(name, story.node, story.scheduled_ns - max(story.created_ns, start_ns))
        elif is_new:
            side.places[name] = _NOWHERE
    preempted = sum(story.was_preempted for story in in_order)
    return side.places, side.sums(preempted, sum(story.disruption == EVICTED for story in in_order))


def _workload(made_by: str, history: History) -> str:
    """The workload behind whoever made a pod: a ReplicaSet and a Job have their names from it."""
    kind, _, key = made_by.partition(" ")
    behind = _BEHIND.get(kind)
    above = key.rpartition("-")[0]
    return f"{behind} {above}" if behind is not None and history.has_seen(behind, above) else made_by
