"""Stories recorded on a real control plane, and their comparison with Podium's.

A story (`stories.jsonl.xz`) has `objects` at its beginning, running pods with their `age` in seconds, `steps` and
`until`. An outcome (`stories-recorded.jsonl.xz`) is what a watch and the log of kube-scheduler v1.36.2 recorded, in
seconds since its beginning. Stories that were played more than once have more than one.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter, defaultdict
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from podium.sim.history import SimEvent
from podium.sim.results.result import Result
from tests.sim.attempts import failed_attempts_told
from tests.sim.simulating import simulate

HERE = Path(__file__).parent
START = datetime(2026, 1, 1, tzinfo=UTC)
WORKLOADS = ("Deployment", "ReplicaSet", "Job", "StatefulSet", "DaemonSet")
RUNNING = {
    "phase": "Running",
    "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
}
TOLERANCE_SECONDS = 1.6
"""How far apart the same thing may happen: a real control plane takes its time, and ends a backoff by the second."""

AT_ONCE_SECONDS = 0.35
"""What was recorded less than this apart happened at one virtual instant."""

Raw = dict[str, Any]
Nominations = list[tuple[float, str | None]]


@dataclass(slots=True)
class Outcome:
    """The compared outcome of a story. Names of workloads' pods differ between runs, so these are grouped by workload.

    For each pod: its end and node, the time of its binding, its nominations and their ends before that, and the times
    of its attempts. `loads` and `load_binds` are the ends and the binding times of a workload's pods. `preempted`
    counts the preemptions by preemptor and victim.
    """

    ends: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    binds: dict[str, float] = field(default_factory=dict)
    nominations: dict[str, Nominations] = field(default_factory=dict)
    attempts: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    loads: dict[str, Counter[tuple[str, str | None]]] = field(default_factory=lambda: defaultdict(Counter))
    load_binds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    preempted: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Story:
    """A story and what was recorded of it. ``known`` says why a difference would not count, "" where it does."""

    name: str
    objects: list[Raw]
    steps: list[Raw]
    until: float
    recorded: list[Raw]
    latency: str = "0"

    @property
    def known(self) -> str:
        return str(self.recorded[0].get("known") or "")

    def play(self) -> Outcome:
        """Return the story as Podium plays it."""
        with failed_attempts_told() as failed:
            found = self._of_result(simulate(self.documents(), start=stamp(0), latency=self.latency))
        for time, pod in failed:
            if self._is_followed(short(pod)):
                found.attempts[short(pod)].append(time)
        return found

    def outcomes(self) -> list[Outcome]:
        return [self._of_record(one) for one in self.recorded]

    def documents(self) -> list[Raw]:
        steps = []
        for step in deepcopy(self.steps):
            for change in ("delete", "finish", "scale", "evict", "patch"):
                if change in step and step[change].get("kind") not in ("Node", "ResourceSlice"):
                    step[change].setdefault("namespace", "default")
            if step.get("delete", {}).get("kind") == "Pod":
                step["delete"]["outright"] = True
            if "drain" in step:
                step["drain"].update(force=True, deleteEmptyDirData=True)
            steps.append({**step, "at": f"{step['at']:.3f}s"})
        spec = {"until": f"{self.until}s", "steps": steps}
        scenario = {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "s"}, "spec": spec}
        return [*(initial(one) for one in self.objects), scenario]

    def _owner(self, pod: str) -> str:
        """Return the workload that a pod belongs to by its name, "" for one that is on its own."""
        given = [*self.objects, *(one for step in self.steps for one in step.get("apply", ()))]
        if any(one["kind"] == "Pod" and one["metadata"]["name"] == pod for one in given):
            return ""
        loads = [one["metadata"]["name"] for one in given if one["kind"] in WORKLOADS]
        return max((load for load in loads if pod.startswith(f"{load}-")), key=len, default="")

    def _is_followed(self, pod: str) -> bool:
        """Return whether it came in the story, on its own."""
        is_initial = any(one["kind"] == "Pod" and one["metadata"]["name"] == pod for one in self.objects)
        return not is_initial and not self._owner(pod)

    def _name(self, pod: str) -> str:
        return self._owner(pod) or pod

    def _of_record(self, recorded: Raw) -> Outcome:
        found = Outcome()
        for pod in recorded["pods"]:
            name, owner = pod["name"], self._owner(pod["name"])
            end = ("gone" if pod["gone"] is not None else pod["phase"], pod["node"])
            self._end(found, name, end, pod["bound"])
            if owner or pod["initial"]:
                continue
            if pod["bound"] is not None:
                found.binds[name] = pod["bound"]
            until = min(time for time in (pod["bound"], pod["gone"], 1e9) if time is not None)
            # The binding itself clears the nomination.
            before = [(time, node) for time, node in pod["nominations"] if time <= until + 0.02]
            found.nominations[name] = changes([one for one in before if one[1] or one[0] < until - 0.02])
            found.attempts[name] = recorded["attempts"].get(name, [])
        # Of several preemptors of one victim the first counts; a victim's uid, where it is recorded, comes last.
        first = {one[-1] if len(one) > 4 else one[1]: one for one in reversed(recorded["preempted"]) if one[2]}
        found.preempted = Counter((self._name(one[1]), self._name(one[2])) for one in first.values())
        return found

    def _of_result(self, result: Result) -> Outcome:
        found = Outcome()
        gone = Counter(event.pod for event in result.events if event.reason in ("Terminated", "Deleted"))
        for pod in result.pods:
            gone[pod["pod"]] -= 1
            end = ("gone" if gone[pod["pod"]] >= 0 else pod["phase"], pod["node"])
            self._end(found, short(pod["pod"]), end, pod["scheduledAt"])
        for event in result.events:
            name = short(event.pod)
            if event.reason == "Preempted":
                found.preempted[self._name(name), self._name(short(event.by))] += 1
            if name and self._is_followed(name):
                _tell(found, name, event)
        found.nominations = {name: changes(each) for name, each in found.nominations.items()}
        return found

    def _end(self, found: Outcome, name: str, end: tuple[str, str | None], bound: float | None) -> None:
        owner = self._owner(name)
        if not owner:
            found.ends[name] = end
            return
        found.loads[owner][end] += 1
        if bound is not None:
            found.load_binds[owner].append(bound)


def _tell(found: Outcome, name: str, event: SimEvent) -> None:
    if event.reason == "Scheduled":
        found.attempts[name].append(event.time)
        found.binds[name] = event.time
    elif event.reason in ("Nominated", "NominationCleared"):
        node = event.node if event.reason == "Nominated" else None
        found.nominations.setdefault(name, []).append((event.time, node))


def initial(one: Raw) -> Raw:
    """Return an object of a story as it is when the story begins."""
    made = deepcopy(one)
    age = made.pop("age", 0)
    if made["kind"] == "Pod":
        made["metadata"]["creationTimestamp"] = stamp(-age)
        made["status"] = {**RUNNING, "startTime": stamp(-age)}
        annotations = made["metadata"].get("annotations") or {}
        if "podium.dev/duration" in annotations:
            # A story counts it from its beginning, Podium from the pod's.
            left = float(annotations["podium.dev/duration"].removesuffix("s"))
            annotations["podium.dev/duration"] = f"{age + left:.1f}s"
    return made


def stamp(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def short(key: str | None) -> str:
    return (key or "").removeprefix("default/")


def changes(nominations: Nominations) -> Nominations:
    """Nominations without repeats, from the first node on."""
    found: Nominations = []
    for time, node in nominations:
        if node != (found[-1][1] if found else None):
            found.append((time, node))
    return found


def moments(times: list[float]) -> list[float]:
    """Return times, counting those at one virtual instant once."""
    found: list[float] = []
    last = -1e9
    for time in sorted(times):
        if time - last > AT_ONCE_SECONDS:
            found.append(time)
        last = time
    return found


def differences(real: Outcome, own: Outcome, until: float) -> list[str]:
    """Return what differs. What happens on one side only is no difference when it is about to end."""
    found = [
        one
        for pod in sorted(real.ends.keys() | own.ends.keys())
        for one in _differences_of_pod(pod, real, own, until - TOLERANCE_SECONDS)
    ]
    for load in sorted(real.loads.keys() | own.loads.keys()):
        if real.loads[load] != own.loads[load]:
            found.append(_differ(f"{load} ends", real.loads[load], own.loads[load]))
        if not are_close(sorted(real.load_binds[load]), sorted(own.load_binds[load])):
            found.append(_differ(f"{load} is bound", real.load_binds[load], own.load_binds[load]))
    if real.preempted != own.preempted:
        found.append(_differ("preempted", real.preempted - own.preempted, own.preempted - real.preempted))
    return found


def _differences_of_pod(pod: str, real: Outcome, own: Outcome, late: float) -> list[str]:
    found = []
    bound = [time for time in (real.binds.get(pod),) if time is not None]
    ours = [time for time in (own.binds.get(pod),) if time is not None]
    if len(bound) != len(ours) and max(bound + ours) > late:
        return []
    if real.ends.get(pod) != own.ends.get(pod):
        found.append(_differ(f"{pod} ends", real.ends.get(pod), own.ends.get(pod)))
    if not are_close(bound, ours):
        found.append(_differ(f"{pod} is bound", bound, ours))
    was, is_ = real.nominations.get(pod, []), own.nominations.get(pod, [])
    same_nodes = [node for _, node in was] == [node for _, node in is_]
    if not same_nodes or not are_close([time for time, _ in was], [time for time, _ in is_]):
        found.append(_differ(f"{pod} is nominated", was, is_))
    return found


def _differ(what: str, one: object, other: object) -> str:
    return f"  {what}: kube-scheduler {one}, Podium {other}"


def other_attempts(real: Outcome, own: Outcome) -> list[str]:
    """Return the pods that were attempted at other moments, or more often than in the real cluster at one of them."""
    return [
        f"  {pod} is attempted: kube-scheduler {real.attempts[pod]}, Podium {own.attempts[pod]}"
        for pod in sorted(real.attempts.keys() | own.attempts.keys())
        if not are_close(moments(real.attempts[pod]), moments(own.attempts[pod]))
        or len(own.attempts[pod]) > len(real.attempts[pod])
    ]


def are_close(times: list[float], others: list[float]) -> bool:
    if len(times) != len(others):
        return False
    return all(abs(one - other) <= TOLERANCE_SECONDS for one, other in zip(times, others, strict=True))


@cache
def all_stories() -> list[Story]:
    return _stories("stories", "0")


@cache
def more_stories() -> list[Story]:
    """Stories in which controllers and the scheduler act on the same events, so that latencies decide who is first."""
    return _stories("more-stories", "5ms")


def _stories(name: str, latency: str) -> list[Story]:
    recorded = defaultdict(list)
    for one in _lines(f"{name}-recorded.jsonl.xz"):
        recorded[one["name"]].append(one)
    return [
        Story(one["name"], one["objects"], one["steps"], one["until"], recorded[one["name"]], latency)
        for one in _lines(f"{name}.jsonl.xz")
    ]


def _lines(name: str) -> list[Raw]:
    with lzma.open(HERE / name) as lines:
        return [json.loads(line) for line in lines]
