"""What is told of pods that wait: causes, changes, and those that get a node after all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.app.console import cells
from podium.app.console.cells import Name, Part
from podium.app.console.page import counted, listed
from podium.app.planning.answer import Section
from podium.app.planning.deciding.causes import Blocked
from podium.app.planning.deciding.change import Verified
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Settled
from podium.app.planning.deciding.quotas import Unmade
from podium.cluster.pods import PodRecord

_MOST_ROWS = 12
_MOST_CHANGES = 6
_MOST_NAMES = 2


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause with all the kinds of pods that wait for it; `best` lets most of them in, None where nothing does."""

    waiting: tuple[Blocked, ...]
    best: Verified | None
    freed: int

    @property
    def pods(self) -> tuple[PodRecord, ...]:
        """The pods, in the order of the queue within their kinds."""
        return tuple(pod for each in self.waiting for pod in each.pods)

    @property
    def text(self) -> str:
        """The cause in words, as it is for the most pods of a kind."""
        return max(self.waiting, key=lambda each: len(each.pods)).text


def told_causes(decisions: Decisions, causes: Sequence[Cause]) -> Section:
    """Each cause with the change that lets most of its pods in."""
    rows: list[tuple[str, ...]] = []
    for cause in causes[:_MOST_ROWS]:
        rows.append((f"{len(cause.pods):,}", _whose(decisions, cause.pods), cause.text))
        if cause.best is not None:
            rows.append(("", "", f"-> {helped(cause.best, cause.freed)}"))
    left = len(causes) - _MOST_ROWS
    if left > 0:
        rows.append(("", "", f"and {left:,} more causes"))
    data = [_cause_data(decisions, cause) for cause in causes]
    return Section("causes", "Why they wait", tuple(rows), ("pods", "of", "why"), "each cause once", data)


def told_pods(decisions: Decisions, causes: Sequence[Cause], settled: Settled) -> Section:
    """What becomes of each pod, in the order of the queue."""
    texts = {
        pod.uid: f"waits: {cause.text}" + (f" -> {cause.best.change.text}" if cause.best is not None else "")
        for cause in causes
        for pod in cause.pods
    }
    texts |= {fate.pod.uid: f"gets {fate.node}" for fate in settled.fates}
    pods = decisions.in_order([*(fate.pod for fate in settled.fates), *settled.waiting])
    rows = tuple((Name(pod.key, cells.PODS), f"{pod.priority}", texts.get(pod.uid, "waits")) for pod in pods)
    return Section("pods", "Pods", rows, ("pod", "priority", ""), f"{counted(len(rows), 'pending pod')}")


def helped(best: Verified, freed: int) -> str:
    """What a change does."""
    harm = f", and preempts {best.preempted:,}" if best.preempted else ""
    return f"{best.change.text} lets {freed:,} in{harm}"


def _whose(decisions: Decisions, some: Sequence[PodRecord]) -> str:
    """The workloads of pods, those of the most pods first."""
    counts = Counter(map(decisions.workloads.of, some))
    return listed(sorted(counts, key=lambda workload: (-counts[workload], workload)), _MOST_NAMES - 1)


def _cause_data(decisions: Decisions, cause: Cause) -> dict[str, Any]:
    counts = Counter(map(decisions.workloads.of, cause.pods))
    return {
        "cause": cause.text,
        "pods": len(cause.pods),
        "examples": [pod.key for pod in cause.pods[:_MOST_NAMES]],
        "workloads": {workload: counts[workload] for workload in sorted(counts)},
        "change": None if cause.best is None else cause.best.change.text,
        "freed": cause.freed,
    }


def told_changes(
    changes: Sequence[Verified], untried: int, number: int, further: tuple[str, int, int] | None
) -> Section:
    """The best changes, and how many nodes let in all that nodes can."""
    rows = [
        (
            f"{each.freed:,} of {number:,}",
            f"{each.preempted:,} preempted" if each.preempted else "",
            f"{each.change.text}",
        )
        for each in changes[:_MOST_CHANGES]
    ]
    if further is not None and further[1] > 1:
        rows.append((f"{further[2]:,} of {number:,}", "", f"{further[1]:,} more nodes like {further[0]}"))
    left = max(len(changes) - _MOST_CHANGES, 0)
    if left or untried:
        told = [f"and {counted(left, 'further change')}" if left else "", f"{untried:,} not tried" if untried else ""]
        rows.append(("", "", "; ".join(filter(None, told))))
    kept = rows if any(row[1] for row in rows) else [(row[0], row[2]) for row in rows]
    data: list[dict[str, Any]] = [_change_data(each) for each in changes]
    if further is not None and further[1] > 1:
        nodes = {"sort": "nodes", "change": f"{further[1]} more nodes like {further[0]}", "nodes": further[1]}
        data.append({**nodes, "freed": further[2], "preempted": 0, "objects": further[1]})
    return Section("changes", "What would let them in", tuple(kept), rest="each decided again", data=data)


def _change_data(verified: Verified) -> dict[str, Any]:
    change = verified.change
    return {
        "sort": change.sort,
        "change": change.text,
        "freed": verified.freed,
        "preempted": verified.preempted,
        "objects": change.objects,
    }


def told_unmade(unmade: Sequence[Unmade]) -> Section:
    """The pods that quotas refuse to have made."""
    rows = tuple((f"{each.number:,}", Name(each.workload, cells.WORKLOADS), each.text) for each in unmade[:_MOST_ROWS])
    data = [{"workload": each.workload, "pods": each.number, "why": each.text} for each in unmade]
    return Section("notMade", "Not made", rows, rest="wanted, and refused by a quota", data=data)


def told_fates(decisions: Decisions, settled: Settled) -> Section:
    """Who gets a node as things are, by workload."""
    groups: dict[tuple[str, bool], list[Any]] = {}
    for fate in settled.fates:
        groups.setdefault((decisions.workloads.of(fate.pod), bool(fate.victims)), []).append(fate)
    rows: list[tuple[Part, ...]] = []
    for (workload, preempts), fates in groups.items():
        nodes = listed(sorted({fate.node for fate in fates}), _MOST_NAMES)
        victims = Counter(decisions.workloads.of(victim) for fate in fates for victim in fate.victims)
        whom = listed([f"{victims[name]:,} of {name}" for name in sorted(victims)], _MOST_NAMES)
        rows.append(
            (
                f"{len(fates):,}",
                Name(workload, cells.WORKLOADS),
                f"on {nodes}" + (f", preempting {whom}" if preempts else ""),
            )
        )
    data = [
        {"pod": fate.pod.key, "node": fate.node, "victims": [victim.key for victim in fate.victims]}
        for fate in settled.fates
    ]
    left = len(rows) - _MOST_ROWS
    shown = rows[:_MOST_ROWS] + ([("", f"and {left:,} more workloads", "")] if left > 0 else [])
    return Section("placed", "Get a node", tuple(shown), rest="as things are, one after the other", data=data)
