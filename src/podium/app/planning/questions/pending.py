"""`podium plan pending`: why pods wait, each cause once, and the one change that would place most of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from podium.app.answers import Frame, kinds
from podium.app.cluster import Cluster
from podium.app.console import cells
from podium.app.console.cells import Name, Part, by_key, counted, listed
from podium.app.console.page import Section
from podium.app.explaining.obstacles import joined
from podium.app.planning.answer import PlanAnswer, PlanProgress
from podium.app.planning.deciding.capacity import NodeShape, shapes_of
from podium.app.planning.deciding.causes import BlockedPods, RefusedPods, blocked_pods, refused_pods
from podium.app.planning.deciding.decisions import Decisions, QueueResult, decided_answer, sampled_decisions
from podium.app.planning.deciding.search import VerifiedChange, helpful_changes, nodes_needed, raised_quotas, remedy_of
from podium.app.planning.impact import PlanFinding
from podium.cluster.pods import PodRecord

_MAX_SUBJECTS = 20
_MAX_ROWS = 12
_MAX_CHANGES = 6
_MAX_NAMES = 2


@dataclass(frozen=True, slots=True)
class PendingCause:
    """One cause in words, with the pods that wait for it; `best` is the change that helps them most, None for none.

    `workloads` has the number of pods of each, the most first, then by name.
    """

    pods: tuple[PodRecord, ...]
    text: str
    workloads: dict[str, int]
    best: VerifiedChange | None
    placed: int

    @property
    def change(self) -> str | None:
        return None if self.best is None else self.best.change.text


def pending_answer(
    loaded: Cluster, namespace: str = "", progress: PlanProgress | None = None, *, samples: int = 0
) -> PlanAnswer:
    """Return the answer for all pods without a node, or those of a namespace; the others are decided about as well.

    With `samples` all are decided about so often, with different tie-breaks. Raises InputError for a pod that no API
    server would have accepted.
    """
    decisions = Decisions(loaded)
    outcomes = sampled_decisions(decisions, decisions.pending, samples)
    with decisions.what_if():
        result = decisions.schedule(decisions.pending, preempts=True)
        if namespace:
            placed = tuple(each for each in result.placed if each.pod.namespace == namespace)
            left = tuple(pod for pod in result.waiting if pod.namespace == namespace)
            result = QueueResult(placed, left, result.postponed)
        waiting = blocked_pods(decisions, result)
        shapes = shapes_of(decisions.cluster, result.waiting)
        changes, untried = helpful_changes(decisions, waiting, shapes, progress)
        refused = refused_pods(decisions, namespace)
        changes = sorted([*changes, *raised_quotas(decisions, refused)], key=lambda each: each.order)
        causes = pending_causes(decisions, waiting, changes)
        more = _more_nodes(decisions, waiting, changes, shapes)
        number = len(result.waiting) + sum(each.number for each in refused)
        sections = (
            _causes_section(causes),
            Section.of(
                "notCreated",
                "Not created",
                ({"workload": each.workload, "pods": each.number, "why": each.text} for each in refused),
                lambda each: (f"{each['pods']:,}", Name(each["workload"], cells.WORKLOADS), each["why"]),
                rest="wanted, and refused by a quota",
                most=_MAX_ROWS,
            ),
            _changes_section(changes, untried, number, more),
            _placed_section(decisions, result),
        )
        table: list[dict[str, Any]] = [
            {"workload": workload, "pods": number, "cause": cause.text, "change": cause.change, "placed": cause.placed}
            for cause in causes
            for workload, number in cause.workloads.items()
        ]
        remedy = remedy_of(decisions, changes[0].change, result.waiting) if changes else None
    return decided_answer(
        decisions,
        "pending",
        _headline(result, refused, changes, more, namespace),
        sections,
        outcomes,
        findings=tuple(_findings(causes, refused, result)),
        caveats=(*loaded.caveats, *result.caveats),
        remedy=remedy,
        further=(_pods_section(decisions, causes, result), _obstacles_section(decisions, waiting)),
        table=Frame.of_rows("table", table, {**kinds("workload", "pods"), **kinds("cause change", "placed")}),
    )


def pending_causes(
    decisions: Decisions, waiting: Sequence[BlockedPods], changes: Sequence[VerifiedChange]
) -> list[PendingCause]:
    """Return the causes, those of the most pods first, each with the change that places the most of its pods."""
    groups = by_key((each.cause, each) for each in waiting)
    found = []
    for group in groups.values():
        pods = tuple(pod for each in group for pod in each.pods)
        uids = {pod.uid for pod in pods}
        counts = [(sum(each.pod.uid in uids for each in change.result.placed), change) for change in changes]
        placed, best = min(counts, key=lambda each: (each[1].preempted - each[0], each[1].order), default=(0, None))
        of = Counter(map(decisions.workloads.of, pods))
        workloads = dict(sorted(of.items(), key=lambda item: (-item[1], item[0])))
        # The words are those of the kind with the most pods.
        text = max(group, key=lambda each: len(each.pods)).text
        found.append(PendingCause(pods, text, workloads, best if placed else None, placed))
    return sorted(found, key=lambda cause: (-len(cause.pods), cause.text))


def _more_nodes(
    decisions: Decisions, waiting: Sequence[BlockedPods], changes: Sequence[VerifiedChange], shapes: Sequence[NodeShape]
) -> dict[str, Any] | None:
    """Return the record of several nodes of the most helpful shape; None if one is enough or no node helps."""
    best = next((each.change for each in changes if each.change.type == "node"), None)
    shape = next((each for each in shapes if best and best.text.endswith(f" {each.representative}")), None)
    if best is None or shape is None or best.objects > 1:
        return None
    number, placed = nodes_needed(decisions, waiting, shape)
    of_nodes = {"type": "nodes", "change": f"{number:,} more nodes like {shape.representative}", "nodes": number}
    return {**of_nodes, "placed": placed, "preempted": 0, "objects": number} if number > 1 else None


def _headline(
    result: QueueResult,
    refused: Sequence[RefusedPods],
    changes: Sequence[VerifiedChange],
    more: dict[str, Any] | None,
    namespace: str,
) -> str:
    """Return what happens to the pods, and what would help most."""
    text = _result_text(result, f" in {namespace}" if namespace else "")
    number = sum(each.number for each in refused)
    if number:
        text = f"{text}, and {counted(number, 'pod', 'is')} not created because of a quota"
    if not changes:
        return f"{text}, and no single change that was tried helps" if result.waiting or refused else text
    text = f"{text}; {_effect_text(changes[0], changes[0].placed)}"
    if changes[0].change.type == "node" and more is not None:
        return f"{text}, {more['nodes']:,} such nodes {more['placed']:,}"
    return text


def _result_text(result: QueueResult, where: str) -> str:
    number = len(result.placed) + len(result.waiting)
    if not number:
        return f"no pod is pending{where}"
    victims = len(result.preemptors)
    cost = f", and {counted(victims, 'pod', 'is')} preempted for that" if victims else ""
    if number == 1:
        return f"the one pending pod gets {'no node' if result.waiting else f'a node without a change{cost}'}"
    if not result.waiting:
        return f"all {number:,} pending pods{where} get a node without a change{cost}"
    return f"{len(result.waiting):,} of {number:,} pending pods{where} get no node"


def _effect_text(best: VerifiedChange, placed: int) -> str:
    harm = f", and preempts {best.preempted:,}" if best.preempted else ""
    return f"{best.change.text} places {placed:,}{harm}"


def _findings(
    causes: Sequence[PendingCause], refused: Sequence[RefusedPods], result: QueueResult
) -> Iterator[PlanFinding]:
    if result.preemptors:
        text = f"{counted(len(result.preemptors), 'pod')} would be preempted for pods that are pending"
        yield PlanFinding("preempt", text)
    for cause in causes:
        text = f"{counted(len(cause.pods), 'pod', 'waits')}: {cause.text}"
        yield PlanFinding("unschedulable", text, tuple(pod.key for pod in cause.pods[:_MAX_SUBJECTS]))
    for each in refused:
        text = f"{counted(each.number, 'pod')} of {each.workload} not created: {each.text}"
        yield PlanFinding("refused", text, (each.workload,))


def _causes_section(causes: Sequence[PendingCause]) -> Section:
    rows: list[tuple[str, ...]] = []
    for cause in causes[:_MAX_ROWS]:
        rows.append((f"{len(cause.pods):,}", listed(list(cause.workloads), _MAX_NAMES - 1), cause.text))
        if cause.best is not None:
            rows.append(("", "", f"-> {_effect_text(cause.best, cause.placed)}"))
    if len(causes) > _MAX_ROWS:
        rows.append(("", "", f"and {len(causes) - _MAX_ROWS:,} more causes"))
    data = [
        {
            "cause": cause.text,
            "pods": len(cause.pods),
            "examples": [pod.key for pod in cause.pods[:_MAX_NAMES]],
            "workloads": dict(sorted(cause.workloads.items())),
            "change": cause.change,
            "placed": cause.placed,
        }
        for cause in causes
    ]
    return Section("causes", "Why they wait", tuple(rows), ("pods", "of", "why"), "each cause once", data)


def _pods_section(decisions: Decisions, causes: Sequence[PendingCause], result: QueueResult) -> Section:
    texts = {
        pod.uid: f"waits: {cause.text}" + (f" -> {cause.change}" if cause.change else "")
        for cause in causes
        for pod in cause.pods
    }
    texts |= {each.pod.uid: f"gets {each.node}" for each in result.placed}
    pods = decisions.in_order([*(each.pod for each in result.placed), *result.waiting])
    rows = tuple((Name(pod.key, cells.PODS), f"{pod.priority}", texts.get(pod.uid, "waits")) for pod in pods)
    return Section("pods", "Pods", rows, ("pod", "priority", ""), counted(len(rows), "pending pod"))


def _obstacles_section(decisions: Decisions, waiting: Sequence[BlockedPods]) -> Section:
    """Return by node the obstacles for the most pods, of those kinds to which it is among the nearest."""
    names, data = decisions.cluster.nodes.names, dict[str, tuple[str, str]]()
    for each in sorted(waiting, key=lambda each: -len(each.pods)):
        for group in each.nearest:
            first = min(group.obstacles, key=lambda obstacle: obstacle.order)
            for row in group.rows:
                data.setdefault(names[row], (first.type, joined(group.obstacles)))
    return Section("obstacles", "Obstacles", (), data=data)


def _changes_section(
    changes: Sequence[VerifiedChange], untried: int, number: int, more: dict[str, Any] | None
) -> Section:
    data = [each.to_dict() for each in changes]
    shown = data[:_MAX_CHANGES]
    if more is not None:
        data.append(more)
        shown.append(more)
    lost = [f"{each['preempted']:,} preempted" if each["preempted"] else "" for each in shown]
    rows = [
        (f"{each['placed']:,} of {number:,}", *([harm] if any(lost) else []), each["change"])
        for each, harm in zip(shown, lost, strict=True)
    ]
    left = max(len(changes) - _MAX_CHANGES, 0)
    if left or untried:
        rest = [f"and {counted(left, 'further change')}" if left else "", f"{untried:,} not tried" if untried else ""]
        rows.append(("",) * (1 + any(lost)) + ("; ".join(filter(None, rest)),))
    return Section("changes", "Changes that would place them", tuple(rows), rest="each decided again", data=data)


def _placed_section(decisions: Decisions, result: QueueResult) -> Section:
    groups = by_key(((decisions.workloads.of(each.pod), bool(each.victims)), each) for each in result.placed)
    rows: list[tuple[Part, ...]] = []
    for (workload, preempts), placed in groups.items():
        victims = sorted(Counter(decisions.workloads.of(pod) for each in placed for pod in each.victims).items())
        names = listed([f"{lost:,} of {name}" for name, lost in victims], _MAX_NAMES)
        nodes = listed(sorted({each.node for each in placed}), _MAX_NAMES)
        where = f"on {nodes}" + (f", preempting {names}" if preempts else "")
        rows.append((f"{len(placed):,}", Name(workload, cells.WORKLOADS), where))
    data = [
        {"pod": each.pod.key, "node": each.node, "victims": [victim.key for victim in each.victims]}
        for each in result.placed
    ]
    rest = "without a change, one after the other"
    return Section("placed", "Get a node", tuple(rows), (), rest, data, most=_MAX_ROWS, noun="workload")
