"""Who preempts whom, where those go whose pods were preempted, and whom they preempt in turn."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from podium.sim.results.result import Result

_PREEMPTED, _CREATED = "Preempted", "Created"


@dataclass(frozen=True, slots=True)
class Preemption:
    """One pod that gave way: to whom, on which node, and where the pod in its place went, None for nowhere.

    `round` is 1 for those who give way to a pod that itself replaces no victim, 2 for those who give way to a victim's
    replacement, and so on.
    """

    time: float
    pod: str
    workload: str
    node: str
    preemptor: str
    preemptor_workload: str
    round: int
    replacement: str | None
    went_to: str | None

    def to_dict(self) -> dict[str, Any]:
        """The preemption as JSON shows it."""
        return {
            "time": self.time,
            "pod": self.pod,
            "workload": self.workload,
            "node": self.node,
            "preemptor": self.preemptor,
            "preemptorWorkload": self.preemptor_workload,
            "round": self.round,
            "replacement": self.replacement,
            "wentTo": self.went_to,
        }


@dataclass(frozen=True, slots=True)
class Group:
    """The preemptions of a round by one workload among the pods of another, counted; `moved` found another node."""

    round: int
    preemptor: str
    victim: str
    number: int
    moved: int

    @property
    def lost(self) -> int:
        """How many found none."""
        return self.number - self.moved


@dataclass(frozen=True, slots=True)
class Cascade:
    """All preemptions of a run, by time."""

    preemptions: tuple[Preemption, ...]

    @property
    def rounds(self) -> int:
        """How often a victim's replacement preempted somebody in turn, and once more."""
        return max((preemption.round for preemption in self.preemptions), default=0)

    def groups(self) -> list[Group]:
        """The preemptions counted by round and by who preempts whom."""
        counts: dict[tuple[int, str, str], list[int]] = {}
        for each in self.preemptions:
            count = counts.setdefault((each.round, each.preemptor_workload, each.workload), [0, 0])
            count[0] += 1
            count[1] += each.went_to is not None
        ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1][0], item[0]))
        return [Group(*key, number, moved) for key, (number, moved) in ordered]


def cascade_of(result: Result) -> Cascade:
    """The preemptions of a run. A victim's place is taken by the next pod that its workload makes, in their order.

    The pod of a StatefulSet comes back under its own name, that of a Deployment under another.
    """
    uids: dict[str, list[dict[str, Any]]] = {}
    for pod in result.pods:
        uids.setdefault(pod["pod"], []).append(pod)
    made: dict[str, deque[dict[str, Any]]] = {}
    for event in result.events:
        created = _at(uids.get(event.pod or "", []), event.time) if event.reason == _CREATED else None
        if created is not None:
            made.setdefault(created["workload"], deque()).append(created)
    found: list[Preemption] = []
    # By uid of a replacement, the round in which its victim gave way.
    rounds: dict[str, int] = {}
    for event in result.events:
        if event.reason != _PREEMPTED or event.pod is None:
            continue
        victim = _at(uids.get(event.pod, []), event.time)
        preemptor = _at(uids.get(event.by or "", []), event.time)
        if victim is None:
            continue
        number = 1 + (rounds.get(preemptor["uid"], 0) if preemptor is not None else 0)
        replacement = _next(made.get(victim["workload"], deque()), event.time)
        if replacement is not None:
            rounds[replacement["uid"]] = number
        found.append(
            Preemption(
                event.time,
                event.pod,
                victim["workload"],
                event.node or "",
                event.by or "",
                preemptor["workload"] if preemptor is not None else event.by or "",
                number,
                replacement["pod"] if replacement is not None else None,
                replacement["node"] if replacement is not None else None,
            )
        )
    return Cascade(tuple(found))


def _at(pods: list[dict[str, Any]], time: float) -> dict[str, Any] | None:
    """Of pods of one name the last that was there at a time."""
    return next((pod for pod in reversed(pods) if pod["createdAt"] <= time), None)


def _next(pods: deque[dict[str, Any]], time: float) -> dict[str, Any] | None:
    """The first pod that was made since, which takes nobody else's place; it is taken out."""
    while pods and pods[0]["createdAt"] < time:
        pods.popleft()
    return pods.popleft() if pods else None
