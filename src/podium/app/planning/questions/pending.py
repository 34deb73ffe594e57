"""`podium plan pending`: why pods wait, each cause once, and the one change that would let most of them in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from podium.app.cluster import Cluster as LoadedCluster
from podium.app.planning.answer import Finding, PlanAnswer, Table
from podium.app.planning.answering import pods
from podium.app.planning.chances.sections import told_outcomes
from podium.app.planning.deciding.causes import Blocked, blocked
from podium.app.planning.deciding.change import Verified
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Settled
from podium.app.planning.deciding.node_changes import NODE
from podium.app.planning.deciding.quotas import Quotas, Unmade, raised
from podium.app.planning.deciding.retelling import settled_again
from podium.app.planning.deciding.search import helping, nodes_needed
from podium.app.planning.deciding.shapes import Shape, shapes_of
from podium.app.planning.deciding.writing import remedy_of
from podium.app.planning.question import scenario_of_spec
from podium.app.planning.questions.pending_sections import (
    Cause,
    helped,
    told_causes,
    told_changes,
    told_fates,
    told_pods,
    told_unmade,
)

_MOST_SUBJECTS = 20


def pending_answer(
    loaded: LoadedCluster,
    namespace: str = "",
    progress: Callable[[float], None] | None = None,
    *,
    stories: int = 0,
) -> PlanAnswer:
    """The answer for all pods without a node, or those of a namespace; the others are decided about as well.

    With `stories` it is decided about all of them so often, with other draws. Raises InputError for a pod that no API
    server would have taken.
    """
    decisions = Decisions(loaded)
    outcomes = settled_again(decisions, decisions.pending, stories)
    with decisions.supposing():
        settled = decisions.settle(decisions.pending, preempts=True)
        meant = _of_namespace(settled, namespace)
        waiting = blocked(decisions, meant)
        shapes = shapes_of(decisions.cluster, meant.waiting)
        changes, untried = helping(decisions, waiting, shapes, progress)
        unmade = Quotas(decisions).unmade(namespace)
        changes = sorted([*changes, *raised(decisions, unmade)], key=lambda each: each.order)
        causes = _causes(waiting, changes)
        further = _further(decisions, waiting, changes, shapes)
        sections = [
            told_causes(decisions, causes),
            told_unmade(unmade),
            told_changes(changes, untried, len(meant.waiting) + sum(each.number for each in unmade), further),
            told_fates(decisions, meant),
            *told_outcomes(outcomes),
        ]
        table = _table(decisions, causes)
        remedy = remedy_of(decisions, changes[0].change, meant.waiting) if changes else None
    return PlanAnswer(
        "pending",
        _headline(meant, unmade, changes, further, namespace),
        findings=tuple(_findings(causes, unmade, meant)),
        rests_on=loaded.rests_on,
        scenario=scenario_of_spec(loaded.read, "pending", {}),
        remedy=remedy,
        sections=tuple(sections),
        further=(told_pods(decisions, causes, meant),),
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
    for shape in shapes if nodes and nodes[0].change.objects == 1 else ():
        if nodes[0].change.text.endswith(f" {shape.like}"):
            number, freed = nodes_needed(decisions, waiting, shape)
            return shape.like, number, freed
    return None


def _headline(
    settled: Settled,
    unmade: Sequence[Unmade],
    changes: Sequence[Verified],
    further: tuple[str, int, int] | None,
    namespace: str,
) -> str:
    """What happens to the pods, and what would help most."""
    said = _said(settled, f" in {namespace}" if namespace else "")
    refused = sum(each.number for each in unmade)
    if refused:
        said = f"{said}, and {pods(refused)} {'is' if refused == 1 else 'are'} not made because of a quota"
    if not changes:
        tried = settled.waiting or unmade
        return f"{said}, and no single change that was tried helps" if tried else said
    best = changes[0]
    told = f"{said}; {helped(best, best.freed)}"
    if best.change.sort == NODE and further is not None and further[1] > 1:
        return f"{told}, {further[1]:,} such nodes {further[2]:,}"
    return told


def _said(settled: Settled, where: str) -> str:
    number = len(settled.fates) + len(settled.waiting)
    if not number:
        return f"no pod is pending{where}"
    if number == 1:
        said = "the one pending pod gets"
        return f"{said} no node" if settled.waiting else f"{said} a node as things are{_victims(settled)}"
    if not settled.waiting:
        return f"all {number:,} pending pods{where} get a node as things are{_victims(settled)}"
    return f"{len(settled.waiting):,} of {number:,} pending pods{where} get no node"


def _victims(settled: Settled) -> str:
    victims = len(settled.victims)
    if not victims:
        return ""
    return f", and {pods(victims)} {'is' if victims == 1 else 'are'} preempted for that"


def _findings(causes: Sequence[Cause], unmade: Sequence[Unmade], settled: Settled) -> list[Finding]:
    found = (
        [Finding("preempt", f"{pods(len(settled.victims))} would be preempted for pods that are pending")]
        if settled.victims
        else []
    )
    return (
        found
        + [
            Finding(
                "unschedulable",
                f"{pods(len(cause.pods))} {'waits' if len(cause.pods) == 1 else 'wait'}: {cause.text}",
                tuple(pod.key for pod in cause.pods[:_MOST_SUBJECTS]),
            )
            for cause in causes
        ]
        + [
            Finding("refused", f"{pods(each.number)} of {each.workload} not made: {each.text}", (each.workload,))
            for each in unmade
        ]
    )


def _table(decisions: Decisions, causes: Sequence[Cause]) -> Table:
    headings = ("workload", "pods", "cause", "change", "freedByIt")
    rows = []
    for cause in causes:
        counts = Counter(map(decisions.workloads.of, cause.pods))
        for workload in sorted(counts, key=lambda name: (-counts[name], name)):
            change = None if cause.best is None else cause.best.change.text
            rows.append((workload, counts[workload], cause.text, change, cause.freed))
    return Table(headings, tuple(rows), frozenset(("pods", "freedByIt")))
