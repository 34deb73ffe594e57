"""`podium plan deploy`: where each pod goes, whom it preempts, where those go, and whom they preempt in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.api.errors import InputError
from podium.api.input.codec import Document
from podium.api.kinds import WORKLOADS
from podium.app.console import cells
from podium.app.console.cells import Name, Names, Part
from podium.app.planning.answer import PlanAnswer, Section
from podium.app.planning.answering import answer_of, pods
from podium.app.planning.cascade import Cascade, cascade_of
from podium.app.planning.question import Played, Question, applied

_MOST_ROWS = 20
_MOST_NODES = 2


def deploy_question(objects: Sequence[Document]) -> Question:
    """The question what happens when the objects are created, or brought to what the files say.

    Raises InputError where there is none that makes a pod, and for a kind that no simulation plays.
    """
    for document in objects:
        if document.object is None:
            kind = document.raw.get("kind")
            raise InputError(
                f"the kind {kind} is not simulated", source=document.source, document=document.index, path=".kind"
            )
    if not deployed(objects):
        raise InputError(f"nothing in the files makes a pod; one of Pod, {', '.join(WORKLOADS)} is needed")
    return Question("deploy", (applied([document.raw for document in objects]),))


def deployed(objects: Sequence[Document]) -> list[str]:
    """The labels of the topmost objects that make pods, in their order."""
    labels = []
    for document in objects:
        kind = type(document.object).__name__
        if document.object is None or document.object.metadata.controller is not None:
            # What another object makes is that object's.
            continue
        if kind == "Pod" or kind in WORKLOADS:
            labels.append(f"{kind} {document.object.key}")
    return labels


@dataclass(frozen=True, slots=True)
class _Placed:
    """The pods of one workload that the plan made: on which nodes, and who waits."""

    workload: str
    nodes: dict[str, int]
    waiting: int

    @property
    def total(self) -> int:
        return sum(self.nodes.values()) + self.waiting


def deploy_answer(played: Played, labels: Sequence[str]) -> PlanAnswer:
    """The answer."""
    cascade = cascade_of(played.result)
    placed = [_placed(played, label) for label in labels]
    sections = [_where(placed), *_cascade(cascade)]
    return answer_of(played, _headline(played, labels, placed, cascade), sections=sections)


def _placed(played: Played, label: str) -> _Placed:
    known = {pod["uid"] for pod in played.baseline.pods}
    nodes: dict[str, int] = {}
    waiting = 0
    for pod in played.result.pods:
        if pod["workload"] != label or pod["uid"] in known or pod["state"] == "terminated":
            continue
        if pod["node"] is None:
            waiting += 1
        else:
            nodes[pod["node"]] = nodes.get(pod["node"], 0) + 1
    return _Placed(label, dict(sorted(nodes.items())), waiting)


def _headline(played: Played, labels: Sequence[str], placed: Sequence[_Placed], cascade: Cascade) -> str:
    what = labels[0] if len(labels) == 1 else f"{len(labels):,} workloads"
    made, waiting = sum(each.total for each in placed), sum(each.waiting for each in placed)
    refused = played.result.summary["short"]
    if not made:
        return f"deploying {what}: no pod is made" + (f": {refused[0]['reason']}" if refused else "")
    fits = f"all {pods(made)} find a node" if made > 1 else "its one pod finds a node"
    if waiting:
        fits = f"{waiting:,} of {pods(made)} wait for a node"
    parts = [f"deploying {what}: {fits}"]
    without = [each.workload for each in placed if not each.total]
    tops = played.result.measures.top_of
    short = [each for each in refused if tops.get(each["workload"], each["workload"]) in without]
    if short:
        parts.append(f"{without[0]} gets no pods: {short[0]['reason']}")
    if cascade.preemptions:
        rounds = f" in {cascade.rounds:,} rounds" if cascade.rounds > 1 else ""
        number = len(cascade.preemptions)
        parts.append(f"{pods(number)} {'is' if number == 1 else 'are'} preempted{rounds}")
        lost = sum(not preemption.went_to for preemption in cascade.preemptions)
        if lost:
            verb = "finds" if lost == 1 else "find"
            parts.append(f"{lost:,} of these {verb} no other node")
    else:
        parts.append("nobody is preempted")
    return "; ".join(parts)


def _where(placed: Sequence[_Placed]) -> Section:
    rows = []
    for each in placed[:_MOST_ROWS]:
        nodes = tuple(
            Name(node, cells.NODES, after=f" ({number:,})" if number > 1 else "") for node, number in each.nodes.items()
        )
        waiting = f"{each.waiting:,} wait" if each.waiting else ""
        rows.append((Name(each.workload, cells.WORKLOADS), pods(each.total), waiting, Names(nodes, most=_MOST_NODES)))
    data = [{"workload": each.workload, "nodes": each.nodes, "waiting": each.waiting} for each in placed]
    return Section("placed", "Where they go", tuple(rows), data=data)


def _cascade(cascade: Cascade) -> list[Section]:
    if not cascade.preemptions:
        return []
    rows: list[tuple[Part, ...]] = []
    for group in cascade.groups()[:_MOST_ROWS]:
        went = f"{group.moved:,} move" if group.moved else ""
        lost = f"{group.lost:,} find no node" if group.lost else ""
        followed = ", ".join(part for part in (went, lost) if part)
        preemptor = Name(group.preemptor, cells.WORKLOADS)
        victim = Name(group.victim, cells.WORKLOADS, before=f"{group.number:,} of ")
        rows.append((f"{group.round}", preemptor, "preempts", victim, followed))
    data: list[dict[str, Any]] = [preemption.to_dict() for preemption in cascade.preemptions]
    left = len(cascade.groups()) - _MOST_ROWS
    if left > 0:
        rows.append(("", f"and {left:,} more"))
    headings = ("round", "who", "", "whom", "who then")
    return [Section("cascade", "Preemptions", tuple(rows), headings, "round by round, to the end", data)]
