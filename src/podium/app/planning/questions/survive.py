"""`podium plan survive`: who could preempt a pod or a workload's pods now, and the smallest changes that spare them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from podium.api.errors import PodiumError
from podium.api.schemas.suggestion import likely
from podium.app.cluster import Cluster as LoadedCluster
from podium.app.console import cells
from podium.app.console.cells import Name, Part
from podium.app.console.page import counted, listed
from podium.app.explaining.target import POD, read_target
from podium.app.explaining.workload import find_workload, pods_of
from podium.app.planning.answer import Finding, PlanAnswer, Remedy, Section, Table
from podium.app.planning.answering import pods
from podium.app.planning.chances.sections import told_outcomes
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Fate, Settled
from podium.app.planning.deciding.retelling import settled_again
from podium.app.planning.deciding.shapes import shapes_of
from podium.app.planning.deciding.sparing import Spared, Sparing, above
from podium.app.planning.deciding.threats import ClassThreat, Taker, takers_of, threats_of
from podium.app.planning.deciding.writing import remedy_of
from podium.app.planning.question import scenario_of_spec
from podium.app.planning.questions.survive_gangs import findings_about, gangs_in_part, headline_about, told_gangs
from podium.cluster.pods import PodRecord

_MOST_ROWS = 12
_MOST_NAMES = 2


def survive_answer(loaded: LoadedCluster, text: str, namespace: str = "default", *, stories: int = 0) -> PlanAnswer:
    """The answer about a pod that has a node, or a workload such as `deploy/web`.

    With `stories` it is decided about all that is pending so often, with other draws. Raises PodiumError for one that
    is not there or has no pod with a node, and InputError as all decisions do.
    """
    decisions = Decisions(loaded)
    targets, whose = _targets(loaded, decisions, text, namespace)
    takers, unasked = takers_of(decisions, targets)
    threats = threats_of(decisions, targets)
    asking = above(decisions, targets)
    outcomes = settled_again(decisions, asking, stories, comes_back=True)
    with decisions.supposing():
        settled = decisions.settle(asking, preempts=True, comes_back=True)
    taken = _taken(settled, targets)
    gangs = gangs_in_part(decisions, targets, settled)
    changes: list[Spared] = []
    remedy: Remedy | None = None
    if taken:
        shapes = shapes_of(decisions.cluster, decisions.pending)
        changes = Sparing(decisions, tuple(targets), whose, settled).changes(shapes)
        remedy = remedy_of(decisions, changes[0].change, decisions.pending) if changes else None
    rests_on = loaded.rests_on
    finding = Finding("preempt", f"{pods(len(taken))} of {whose} would be preempted", tuple(p.key for p, _ in taken))
    return PlanAnswer(
        "survive",
        _headline(decisions, whose, targets, taken, takers, changes) + headline_about(gangs),
        findings=(*((finding,) if taken else ()), *findings_about(gangs)),
        rests_on=rests_on,
        scenario=scenario_of_spec(loaded.read, "survive", {}),
        remedy=remedy,
        further=(_told_pods(targets, taken),),
        sections=(
            Section("survives", "", (), data=not taken),
            _told_taken(decisions, taken),
            *((told_gangs(gangs),) if gangs else ()),
            _told_takers(decisions, takers, unasked),
            _told_changes(decisions, changes, settled, is_taken=bool(taken)),
            _told_classes(threats),
            *told_outcomes(outcomes),
        ),
        table=_table(decisions, targets, taken),
    )


def _targets(loaded: LoadedCluster, decisions: Decisions, text: str, namespace: str) -> tuple[list[PodRecord], str]:
    """The pods with a node that are meant, by key, and what they are called together."""
    placed = {record.key: record for record in decisions.cluster.placed.values()}
    target = read_target(text, namespace, loaded.explainer.is_pod)
    if target.kind == POD:
        found = placed.get(target.key)
        if found is None:
            raise PodiumError(_missing_pod(decisions, target.key, placed))
        return [found], f"Pod {found.key}"
    label = f"{target.kind} {target.key}"
    document = find_workload(loaded.read.documents, target)
    if document is None or document.object is None:
        known = sorted(item.key for item in decisions.objects if item.kind == target.kind)
        near = likely(target.key, known) or known[:3]
        hint = f"; there is: {', '.join(near)}" if near else ""
        raise PodiumError(f"{label} is not in the input{hint}")
    records = [placed[pod.key] for pod in pods_of(decisions.objects, document.object) if pod.key in placed]
    if not records:
        raise PodiumError(f"{label} has no pod with a node, and so none that could be preempted")
    return records, label


def _missing_pod(decisions: Decisions, key: str, placed: dict[str, PodRecord]) -> str:
    if any(pod.key == key for pod in decisions.pending):
        return f"pod {key} is pending, and nobody can preempt it; podium explain says what becomes of it"
    near = likely(key, sorted(placed))
    return f"pod {key} is not in the input" + (f"; did you mean {' or '.join(near)}?" if near else "")


def _taken(settled: Settled, targets: Sequence[PodRecord]) -> list[tuple[PodRecord, Fate]]:
    """The pods that have to go, with the fate of those who take them."""
    victims = settled.victims
    return [(pod, victims[pod.uid]) for pod in targets if pod.uid in victims]


def _headline(
    decisions: Decisions,
    whose: str,
    targets: Sequence[PodRecord],
    taken: Sequence[tuple[PodRecord, Fate]],
    takers: Sequence[Taker],
    changes: Sequence[Spared],
) -> str:
    several = len(targets) > 1
    if taken:
        some = f"{len(taken):,} of {pods(len(targets))} of {whose} {'do' if len(taken) > 1 else 'does'}"
        by = listed(list(dict.fromkeys(decisions.workloads.of(fate.pod) for _, fate in taken)), _MOST_NAMES)
        does = some if several else f"{whose} does"
        said = f"{does} not survive: {by} preempts {'them' if len(taken) > 1 else 'it'}"
        return f"{said}; {changes[0].change.text} would spare {'them' if several else 'it'}" if changes else said
    them = f"all {pods(len(targets))} of {whose} survive" if several else f"{whose} survives"
    if not decisions.pending:
        return f"{them}: no pod is pending"
    if takers:
        number = sum(len(taker.pods) for taker in takers)
        whom = "some of them" if several else "it"
        alone = f"1 pending pod could take {whom}, and takes others"
        return f"{them}: {alone if number == 1 else f'{number:,} pending pods could take {whom}, and take others'}"
    return f"{them}: none of {counted(len(decisions.pending), 'pending pod')} takes {'any' if several else 'it'}"


def _told_taken(decisions: Decisions, taken: Sequence[tuple[PodRecord, Fate]]) -> Section:
    rows: list[tuple[Part, ...]] = [
        (
            Name(pod.key, cells.PODS),
            f"priority {pod.priority}",
            Name(fate.pod.key, cells.PODS, before="for "),
            f"priority {fate.pod.priority}",
            Name(fate.node, cells.NODES, before="on "),
        )
        for pod, fate in taken[:_MOST_ROWS]
    ]
    left = len(taken) - _MOST_ROWS
    if left > 0:
        rows.append((f"and {left:,} more", "", "", "", ""))
    data = [
        {
            "pod": pod.key,
            "priority": pod.priority,
            "node": fate.node,
            "preemptor": fate.pod.key,
            "preemptorWorkload": decisions.workloads.of(fate.pod),
            "preemptorPriority": fate.pod.priority,
        }
        for pod, fate in taken
    ]
    rest = "if all that is pending is decided about, in the order of the queue"
    return Section("taken", "Preempted", tuple(rows), rest=rest, data=data)


def _told_pods(targets: Sequence[PodRecord], taken: Sequence[tuple[PodRecord, Fate]]) -> Section:
    """Each of the pods, and what becomes of it."""
    by = {pod.uid: fate for pod, fate in taken}
    rows = tuple(
        (
            Name(pod.key, cells.PODS),
            f"{pod.priority}",
            Name(pod.node_name, cells.NODES),
            f"goes for {by[pod.uid].pod.key}" if pod.uid in by else "stays",
        )
        for pod in targets
    )
    return Section("pods", "Pods", rows, ("pod", "priority", "node", ""), counted(len(rows), "pod"))


def _told_takers(decisions: Decisions, takers: Sequence[Taker], unasked: int) -> Section:
    rows = [
        (
            f"{len(taker.pods):,}",
            decisions.workloads.whose(taker.pods),
            f"priority {taker.pods[0].priority}",
            _whom(decisions, taker),
        )
        for taker in takers[:_MOST_ROWS]
    ]
    left = sum(len(taker.pods) for taker in takers[_MOST_ROWS:])
    if left:
        rows.append((f"{left:,}", "more", "", ""))
    if unasked:
        rows.append((f"{unasked:,}", "not asked", "", ""))
    data = [
        {
            "pods": [pod.key for pod in taker.pods],
            "workload": decisions.workloads.of(taker.pods[0]),
            "priority": taker.pods[0].priority,
            "taking": taker.taking,
            "victims": [victim.key for victim in taker.victims],
        }
        for taker in takers
    ]
    return Section("takers", "Who could", tuple(rows), rest="of what is pending, each by itself", data=data)


def _whom(decisions: Decisions, taker: Taker) -> str:
    if taker.taking == "takes":
        return "would, on the node that is best for it"
    others = Counter(map(decisions.workloads.of, taker.victims))
    if not others:
        return "could, on its node"
    return f"could, and takes {', '.join(f'{others[name]:,} of {name}' for name in sorted(others))}"


def _told_changes(decisions: Decisions, changes: Sequence[Spared], settled: Settled, *, is_taken: bool) -> Section:
    rows: list[tuple[str, ...]] = []
    for spared in changes:
        rows += [(spared.change.sort, spared.change.text), ("", f"-> {_then(decisions, spared, settled)}")]
    if is_taken and not rows:
        rows = [("nothing", "that was tried")]
    data = [
        {
            "sort": spared.change.sort,
            "change": spared.change.text,
            "preempted": len(spared.settled.victims),
            "waiting": len(spared.settled.waiting),
        }
        for spared in changes
    ]
    rest = "the smallest change of each sort, decided again"
    return Section("changes", "What would spare them", tuple(rows), rest=rest, data=data)


def _then(decisions: Decisions, spared: Spared, before: Settled) -> str:
    """What happens instead."""
    victims = Counter(decisions.workloads.of(victim) for fate in spared.settled.fates for victim in fate.victims)
    told = [f"{victims[name]:,} of {name} {'goes' if victims[name] == 1 else 'go'}" for name in sorted(victims)]
    known = {pod.uid for pod in before.waiting}
    pending = {pod.uid for pod in decisions.pending}
    waiting = Counter(
        decisions.workloads.of(pod) for pod in spared.settled.waiting if pod.uid in pending and pod.uid not in known
    )
    told += [f"{waiting[name]:,} of {name} {'waits' if waiting[name] == 1 else 'wait'}" for name in sorted(waiting)]
    return listed(told, _MOST_NAMES) if told else "nobody goes or waits for it"


def _told_classes(threats: Sequence[ClassThreat]) -> Section:
    rows = tuple(
        (threat.name, f"{threat.value}", _like(threat), "" if threat.may else "none can") for threat in threats
    )
    data = [
        {
            "priorityClass": threat.name,
            "value": threat.value,
            "canPreempt": threat.may,
            "like": threat.taking,
            "node": threat.node or None,
        }
        for threat in threats
    ]
    headings = ("class", "value", "a pod like it", "any pod of it")
    rest = "what a pod of each priority class would do that came now"
    told = tuple((*row[:3], row[3] or "can, if it is large enough") for row in rows[:_MOST_ROWS])
    return Section("classes", "Priority classes", told, headings, rest, data)


def _like(threat: ClassThreat) -> Part:
    if threat.taking == "cannot":
        return "finds no node"
    does = {"takes": "takes it", "may take": "takes another", "takes others": "takes others", "needs nobody": "fits"}
    return Name(threat.node, cells.NODES, before=f"{does[threat.taking]}, on ")


def _table(decisions: Decisions, targets: Sequence[PodRecord], taken: Sequence[tuple[PodRecord, Fate]]) -> Table:
    fates: dict[str, Any] = {pod.uid: fate for pod, fate in taken}
    rows = []
    for pod in targets:
        fate = fates.get(pod.uid)
        by = None if fate is None else fate.pod.key
        rows.append((pod.key, pod.node_name, pod.priority, "no" if fate else "yes", by))
    return Table(("pod", "node", "priority", "survives", "preemptedFor"), tuple(rows), frozenset(("priority",)))
