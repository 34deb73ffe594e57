"""Comparison of a recorded cluster with its simulation. Pods are matched by name, of one name by their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from podium.api.avoid_list import EVICTED
from podium.api.meta import Kubernetes
from podium.api.times import seconds
from podium.cluster.pods import PREEMPTED
from podium.sim.recording.tape import Recording
from podium.sim.results.disruption_state import JSONValue
from podium.sim.results.result import spread
from podium.sim.simulation import Simulation

PodPlace = tuple[str | None, int | float | None]
"""The node of a pod (None if it got none), and its waiting time in seconds."""

_NOWHERE: PodPlace = (None, None)


class SideTotals(JSONValue, frozen=True, kw_only=True):
    """Totals of one side: pods bound, preempted and evicted, and the waiting times of bound pods."""

    bindings: int
    preempted: int
    evicted: int
    waiting: dict[str, Any] | None


class OtherNode(JSONValue, frozen=True):
    """A pod that is on another node in the simulation, or on none, and what is different."""

    pod: str
    recorded_node: str | None
    recorded_wait: int | float | None
    simulated_node: str | None
    simulated_wait: int | float | None
    difference: str


class RecordingComparison(JSONValue, frozen=True, kw_only=True):
    """Both sides, the number of pods with the same node, and all others."""

    recorded: SideTotals
    simulated: SideTotals
    same_node: int
    other_node: tuple[OtherNode, ...]


class _Side:
    """The pods of one side that were created or bound in the run, by name and number."""

    def __init__(self, initial: Iterable[str]) -> None:
        self.places: dict[str, PodPlace] = {}
        self._waits: list[int] = []
        self._lives = Counter(initial)

    def come(self, pod: str) -> str:
        """Record a new pod; return its name, with a number if there was one of that name before."""
        self._lives[pod] += 1
        name = pod if self._lives[pod] == 1 else f"{pod} #{self._lives[pod]}"
        self.places[name] = _NOWHERE
        return name

    def place(self, name: str, node: str, wait_ns: int) -> None:
        """Record the binding of a pod after a waiting time."""
        self._waits.append(wait_ns)
        self.places[name] = node, seconds(wait_ns)

    def totals(self, preempted: int, evicted: int) -> SideTotals:
        waiting = spread(sorted(self._waits)) if self._waits else None
        return SideTotals(bindings=len(self._waits), preempted=preempted, evicted=evicted, waiting=waiting)


def compare(recording: Recording, objects: Iterable[Kubernetes], simulation: Simulation) -> RecordingComparison:
    """Compare a recording with its simulation; ``objects`` are the initial ones."""
    initial = {object_.metadata.uid: object_.key for object_ in objects if object_.kind == "Pod"}
    there, here, names = _Side(initial.values()), _Side(initial.values()), dict[str, tuple[str, int]]()
    counts = Counter(event.what for event in recording.events)
    for event in (event for event in recording.events if event.kind == "Pod"):
        if event.what == "created":
            names[event.uid] = there.come(event.key), event.at_ns
        elif event.what == "bound":
            name, came_ns = names.get(event.uid, (event.key, 0))
            there.place(name, event.node, event.at_ns - came_ns)
    timelines, start_ns = simulation.history.timelines.values(), simulation.settings.start_ns
    for timeline in timelines:
        name = initial.get(timeline.uid) or here.come(timeline.pod)
        if timeline.bound_in_run and timeline.scheduled_ns is not None:
            here.place(name, timeline.node, timeline.scheduled_ns - max(timeline.created_ns, start_ns))
    ended = Counter(timeline.disruption for timeline in timelines)
    pairs = [
        (name, *there.places.get(name, _NOWHERE), *here.places.get(name, _NOWHERE))
        for name in sorted(there.places.keys() | here.places.keys())
    ]
    nodes, lasting = {stored.key for stored in simulation.store.objects("Node")}, set(initial.values())

    def difference(pod: str, before: str | None, now: str | None) -> str:
        if pod not in lasting and not (pod in there.places and pod in here.places):
            return "only recorded" if pod in there.places else "only simulated"
        if before is None or now is None:
            return "got no node in the simulation" if now is None else "got no node in the recording"
        return "on another node" if before in nodes else "on another node; the recorded one does not exist"

    others = tuple(OtherNode(*pair, difference(pair[0], pair[1], pair[3])) for pair in pairs if pair[1] != pair[3])
    return RecordingComparison(
        recorded=there.totals(counts["preempted"], counts["evicted"]),
        simulated=here.totals(ended[PREEMPTED], ended[EVICTED]),
        same_node=len(pairs) - len(others),
        other_node=others,
    )
