"""`podium plan pending`: why pods wait, each cause once, and the one change that would let most of them in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from podium.app.console.page import counted, listed
from podium.app.loaded import LoadedCluster
from podium.app.planning.answer import Finding, PlanAnswer, Section, Table
from podium.app.planning.answering import pods
from podium.app.planning.deciding.causes import Blocked, blocked
from podium.app.planning.deciding.change import Verified
from podium.app.planning.deciding.decisions import Decisions, Settled
from podium.app.planning.deciding.node_changes import NODE
from podium.app.planning.deciding.search import helping, nodes_needed
from podium.app.planning.deciding.shapes import Shape, shapes_of
from podium.cluster.pods import PodRecord

_MOST_ROWS = 12
_MOST_CHANGES = 6
_MOST_NAMES = 2
_MOST_SUBJECTS = 20


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


def pending_answer(
    loaded: LoadedCluster, namespace: str = "", progress: Callable[[float], None] | None = None
) -> PlanAnswer:
    """The answer for all pods without a node, or those of a namespace; the others are decided about as well.

    Raises InputError for a pod that no API server would have taken.
    """
    decisions = Decisions(loaded)
    with decisions.supposing():
        settled = decisions.settle(decisions.pending, preempts=True)
        meant = _of_namespace(settled, namespace)
        waiting = blocked(decisions, meant)
        shapes = shapes_of(decisions.cluster, meant.waiting)
        changes, untried = helping(decisions, waiting, shapes, progress)
        causes = _causes(waiting, changes)
        further = _further(decisions, waiting, changes, shapes)
        sections = [
            _told_causes(decisions, causes),
            _told_changes(changes, untried, len(meant.waiting), further),
            _told_fates(decisions, meant),
        ]
        table = _table(decisions, causes)
    return PlanAnswer(
        "pending",
        _headline(meant, changes, further, namespace),
        findings=tuple(_findings(causes, meant)),
        rests_on=loaded.rests_on,
        sections=tuple(sections),
        table=table,
    )


def _of_namespace(settled: Settled, namespace: str) -> Settled:
    """What becomes of the pods of a namespace, "" for all."""
    if not namespace:
        return settled
    fates = tuple(fate for fate in settled.fates if fate.pod.namespace == namespace)
    waiting = tuple(pod for pod in settled.waiting if pod.namespace == namespace)
    return Settled(fates, waiting, settled.put_off)


def _causes(waiting: Sequence[Blocked], changes: Sequence[Verified]) -> list[Cause]:
    """The causes, those of the most pods first; each with the change that lets in the most of its pods."""
    groups: dict[frozenset[Any], list[Blocked]] = {}
    for each in waiting:
        groups.setdefault(each.cause, []).append(each)
    found = []
    for group in groups.values():
        uids = {pod.uid for each in group for pod in each.pods}
        counts = [(sum(fate.pod.uid in uids for fate in change.settled.fates), change) for change in changes]
        freed, best = max(
            counts, key=lambda item: (item[0] - item[1].preempted, item[0], -item[1].change.objects), default=(0, None)
        )
        found.append(Cause(tuple(group), best if freed else None, freed))
    return sorted(found, key=lambda cause: (-len(cause.pods), cause.text))


def _further(
    decisions: Decisions, waiting: Sequence[Blocked], changes: Sequence[Verified], shapes: Sequence[Shape]
) -> tuple[str, int, int] | None:
    """Like which node, how many more nodes let in all the pods that such nodes can, and how many these are."""
    nodes = [change for change in changes if change.change.sort == NODE]
    for shape in shapes if nodes else ():
        if nodes[0].change.text.endswith(f" {shape.like}"):
            number, freed = nodes_needed(decisions, waiting, shape)
            return shape.like, number, freed
    return None


def _headline(
    settled: Settled, changes: Sequence[Verified], further: tuple[str, int, int] | None, namespace: str
) -> str:
    number = len(settled.fates) + len(settled.waiting)
    where = f" in {namespace}" if namespace else ""
    if not number:
        return f"no pod is pending{where}"
    if not settled.waiting:
        which = "the one pending pod gets" if number == 1 else f"all {number:,} pending pods{where} get"
        return f"{which} a node as things are{_victims(settled)}"
    which = (
        "the one pending pod gets" if number == 1 else f"{len(settled.waiting):,} of {number:,} pending pods{where} get"
    )
    said = f"{which} no node"
    if not changes:
        return f"{said}, and no single change that was tried helps"
    best = changes[0]
    told = f"{said}; {_helped(best, best.freed)}"
    if best.change.sort == NODE and further is not None and further[1] > 1:
        return f"{told}, {further[1]:,} such nodes {further[2]:,}"
    return told


def _victims(settled: Settled) -> str:
    victims = len(settled.victims)
    if not victims:
        return ""
    return f", and {pods(victims)} {'is' if victims == 1 else 'are'} preempted for that"


def _told_causes(decisions: Decisions, causes: Sequence[Cause]) -> Section:
    rows: list[tuple[str, ...]] = []
    for cause in causes[:_MOST_ROWS]:
        rows.append((f"{len(cause.pods):,}", _whose(decisions, cause.pods), cause.text))
        if cause.best is not None:
            rows.append(("", "", f"-> {_helped(cause.best, cause.freed)}"))
    left = len(causes) - _MOST_ROWS
    if left > 0:
        rows.append(("", "", f"and {left:,} more causes"))
    data = [_cause_data(decisions, cause) for cause in causes]
    return Section("causes", "Why they wait", tuple(rows), ("pods", "of", "why"), "each cause once", data)


def _helped(best: Verified, freed: int) -> str:
    harm = f", and preempts {best.preempted:,}" if best.preempted else ""
    return f"{best.change.text} lets {freed:,} in{harm}"


def _whose(decisions: Decisions, some: Sequence[PodRecord]) -> str:
    """The workloads of pods, those of the most pods first."""
    counts = Counter(map(decisions.workload_of, some))
    return listed(sorted(counts, key=lambda workload: (-counts[workload], workload)), _MOST_NAMES - 1)


def _cause_data(decisions: Decisions, cause: Cause) -> dict[str, Any]:
    counts = Counter(map(decisions.workload_of, cause.pods))
    return {
        "cause": cause.text,
        "pods": len(cause.pods),
        "examples": [pod.key for pod in cause.pods[:_MOST_NAMES]],
        "workloads": {workload: counts[workload] for workload in sorted(counts)},
        "change": None if cause.best is None else cause.best.change.text,
        "freed": cause.freed,
    }


def _told_changes(
    changes: Sequence[Verified], untried: int, number: int, further: tuple[str, int, int] | None
) -> Section:
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


def _told_fates(decisions: Decisions, settled: Settled) -> Section:
    """Who gets a node as things are, by workload."""
    groups: dict[tuple[str, bool], list[Any]] = {}
    for fate in settled.fates:
        groups.setdefault((decisions.workload_of(fate.pod), bool(fate.victims)), []).append(fate)
    rows = []
    for (workload, preempts), fates in groups.items():
        nodes = listed(sorted({fate.node for fate in fates}), _MOST_NAMES)
        victims = Counter(decisions.workload_of(victim) for fate in fates for victim in fate.victims)
        whom = listed([f"{victims[name]:,} of {name}" for name in sorted(victims)], _MOST_NAMES)
        rows.append((f"{len(fates):,}", workload, f"on {nodes}" + (f", preempting {whom}" if preempts else "")))
    data = [
        {"pod": fate.pod.key, "node": fate.node, "victims": [victim.key for victim in fate.victims]}
        for fate in settled.fates
    ]
    left = len(rows) - _MOST_ROWS
    shown = rows[:_MOST_ROWS] + ([("", f"and {left:,} more workloads", "")] if left > 0 else [])
    return Section("placed", "Get a node", tuple(shown), rest="as things are, one after the other", data=data)


def _findings(causes: Sequence[Cause], settled: Settled) -> list[Finding]:
    found = (
        [Finding("preempt", f"{pods(len(settled.victims))} would be preempted for pods that are pending")]
        if settled.victims
        else []
    )
    return found + [
        Finding(
            "unschedulable",
            f"{pods(len(cause.pods))} {'waits' if len(cause.pods) == 1 else 'wait'}: {cause.text}",
            tuple(pod.key for pod in cause.pods[:_MOST_SUBJECTS]),
        )
        for cause in causes
    ]


def _table(decisions: Decisions, causes: Sequence[Cause]) -> Table:
    headings = ("workload", "pods", "cause", "change", "freedByIt")
    rows = []
    for cause in causes:
        counts = Counter(map(decisions.workload_of, cause.pods))
        for workload in sorted(counts, key=lambda name: (-counts[name], name)):
            change = None if cause.best is None else cause.best.change.text
            rows.append((workload, counts[workload], cause.text, change, cause.freed))
    return Table(headings, tuple(rows))
