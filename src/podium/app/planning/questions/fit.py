"""`podium plan fit`: how many pods such as this one fit, where, and what ends it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from podium.api.basis import Caveat
from podium.api.errors import InputError
from podium.api.input.codec import Document
from podium.api.kinds import KIND_OF, WORKLOADS
from podium.api.pod import Pod, PodStatus
from podium.app.cluster import Cluster as LoadedCluster
from podium.app.console import cells
from podium.app.console.cells import Name
from podium.app.console.page import listed
from podium.app.explaining.workload import MadePod, next_pod, wanted_of
from podium.app.planning.answer import Finding, PlanAnswer, Section, Table
from podium.app.planning.answering import pods
from podium.app.planning.bounds import MOST_PLACED
from podium.app.planning.deciding.capacity import Capacity, capacity_of
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.shapes import Shape, shapes_of
from podium.app.planning.questions.fit_replicas import in_nodes, so_many, tally
from podium.app.planning.questions.fit_scenario import Asked, FitWishes, fit_scenario
from podium.cluster.pods import PodRecord

_MOST_ROWS = 20
_MOST_NAMES = 3
_POD = "Pod"


def asked_for(documents: Sequence[Document]) -> tuple[Asked, list[Document]]:
    """The one object of the files that makes pods, and what else they hold. Raises InputError where that is not one."""
    makers = [document for document in documents if _makes_pods(document)]
    if len(makers) != 1:
        known = ", ".join((_POD, *WORKLOADS))
        problem = f"the files hold {len(makers)} objects that make pods; one is needed: {known}"
        raise InputError(problem, source=documents[0].source if documents else "")
    maker = makers[0]
    rest = [document for document in documents if document is not maker]
    item = maker.object
    if item is None:
        raise AssertionError("an object of a kind that is not read makes no pod")
    label = f"{type(item).__name__} {item.key}"
    if isinstance(item, Pod):
        return Asked(label, MadePod(_unplaced(item)), None), rest
    return Asked(label, next_pod(maker, ()), wanted_of(item)), rest


def fit_answer(loaded: LoadedCluster, asked: Asked, wishes: FitWishes) -> PlanAnswer:
    """The answer. Raises InputError for a pod that no API server would take, and for a number of pods out of range."""
    if wishes.replicas is not None and not 1 <= wishes.replicas <= MOST_PLACED:
        raise InputError(f"replicas: {wishes.replicas:,} is not from 1 to {MOST_PLACED:,}")
    decisions = Decisions(loaded)
    with decisions.supposing():
        if wishes.after_pending:
            decisions.settle(decisions.pending, preempts=True)
        for claim in asked.made.claims:
            if decisions.cluster.find(claim) is None:
                decisions.put(claim)
        pod = decisions.bring(asked.made.pod)
        pending = 0 if wishes.after_pending else len(decisions.pending)
        rests_on = (*loaded.rests_on, *_pending_first(pending))
        if wishes.replicas is None:
            return _as_many(decisions, asked, pod, wishes, rests_on)
        return so_many(decisions, asked, pod, wishes, wishes.replicas, rests_on)


def _makes_pods(document: Document) -> bool:
    item = document.object
    if item is None or item.metadata.controller is not None:
        return False
    kind = KIND_OF[type(item)].name
    return kind == _POD or kind in WORKLOADS


def _unplaced(pod: Pod) -> Pod:
    """The pod as it is before anybody has placed it, under a uid that no other pod has."""
    meta = msgspec.structs.replace(pod.metadata, uid="", deletion_timestamp=None)
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return msgspec.structs.replace(pod, metadata=meta, spec=spec, status=PodStatus())


def _pending_first(pending: int) -> tuple[Caveat, ...]:
    if not pending:
        return ()
    verb = "is" if pending == 1 else "are"
    message = f"{pods(pending)} {verb} pending and may take room first; --after-pending lets them"
    return (Caveat("pending", message, pending),)


def _as_many(
    decisions: Decisions, asked: Asked, pod: PodRecord, wishes: FitWishes, rests_on: tuple[Caveat, ...]
) -> PlanAnswer:
    """As many as fit, by the shape of nodes."""
    found = capacity_of(decisions, pod)
    more = capacity_of(decisions, pod, preempts=True) if wishes.preempts else None
    shapes = shapes_of(decisions.cluster, [pod])
    data = {
        "pod": asked.label,
        "fits": found.total,
        "atLeast": found.is_cut,
        "nodes": sum(bool(count) for count in found.counts.values()),
        "wanted": asked.wanted,
        "withPreemption": None if more is None else more.total,
        "why": found.before or None,
    }
    sections = [
        Section("fit", "", (), data=data),
        _by_shape(shapes, found, more),
        _ending(decisions, found),
    ]
    short = not found.total or (asked.wanted is not None and found.total < asked.wanted)
    findings = (Finding("unschedulable", _short(asked, found), (asked.label,)),) if short else ()
    return PlanAnswer(
        "fit",
        _headline(decisions, asked, found, more),
        findings=findings,
        rests_on=rests_on,
        scenario=fit_scenario(decisions.loaded.read, asked, wishes, (more or found).total + 1),
        sections=tuple(sections),
        further=(_told_nodes(decisions, found, more),),
        table=_table(decisions, found, more),
    )


def _headline(decisions: Decisions, asked: Asked, found: Capacity, more: Capacity | None) -> str:
    if found.before:
        helped = f"; {more.total:,} if all that it may preempt gave way" if more is not None and more.total else ""
        return f"none of {asked.label} fits: {found.before}{helped}"
    least = "at least " if found.is_cut else ""
    if found.total:
        nodes = sum(bool(count) for count in found.counts.values())
        verb = "fits" if found.total == 1 else "fit"
        said = (
            f"{least}{found.total:,} of {asked.label} {verb}, on {nodes:,} of {in_nodes(len(decisions.cluster.nodes))}"
        )
    else:
        said = f"none of {asked.label} fits on any of {in_nodes(len(decisions.cluster.nodes))}"
    wanted = f", {asked.wanted:,} wanted" if asked.wanted is not None else ""
    helped = f"; {more.total:,} if all that it may preempt gave way" if more is not None else ""
    return f"{said}{wanted}{helped}; {_binding(found)}" if found.ends else f"{said}{wanted}{helped}"


def _binding(found: Capacity) -> str:
    """What ends it on the most nodes that take some, or on all where none does."""
    takers = [row for row in found.ends if found.counts.get(row)] or list(found.ends)
    (text, number), *others = tally(found.ends[row] for row in takers)
    where = "" if not others else f" on {in_nodes(number)}"
    return f"{'what ends it' if found.total else 'in the way'}{where}: {text}"


def _short(asked: Asked, found: Capacity) -> str:
    wanted = "" if asked.wanted is None else f" of {asked.wanted:,}"
    return f"{pods(found.total)}{wanted} of {asked.label} fit" + (f": {found.before}" if found.before else "")


def _by_shape(shapes: Sequence[Shape], found: Capacity, more: Capacity | None) -> Section:
    """How many fit by shape of node, those that take the most first."""
    rows, data = [], []
    ordered = sorted(shapes, key=lambda shape: (-_sum(found, shape), -len(shape.rows), shape.like))
    for shape in ordered if found.counts else ():
        each = sorted(found.counts.get(row, 0) for row in shape.rows)
        per_node = f"{each[0]:,}" if each[0] == each[-1] else f"{each[0]:,} to {each[-1]:,}"
        ends = tally(found.ends[row] for row in shape.rows if row in found.ends)
        told = "; ".join(text if len(ends) == 1 else f"{text} ({number:,})" for text, number in ends[:_MOST_NAMES])
        freed = f"{_sum(more, shape):,}" if more is not None else ""
        rows.append((f"{_sum(found, shape):,}", freed, f"{len(shape.rows):,}", per_node, shape.text, told))
        data.append(
            {
                "shape": shape.text,
                "like": shape.like,
                "nodes": len(shape.rows),
                "fits": _sum(found, shape),
                "withPreemption": None if more is None else _sum(more, shape),
                "perNode": {"least": each[0], "most": each[-1]},
                "ends": [{"why": text, "nodes": number} for text, number in ends],
            }
        )
    headings = ["fit", "preempting", "nodes", "on each", "like", "what ends it"]
    kept = [column for column in range(len(headings)) if more is not None or column != 1]
    shown = tuple(tuple(row[column] for column in kept) for row in rows[:_MOST_ROWS])
    left = len(rows) - _MOST_ROWS
    if left > 0:
        shown += (("", *("" for _ in kept[2:]), f"and {left:,} more shapes"),)
    return Section("shapes", "Where", shown, tuple(headings[column] for column in kept), "by shape of node", data)


def _sum(found: Capacity, shape: Shape) -> int:
    return sum(found.counts.get(row, 0) for row in shape.rows)


def _ending(decisions: Decisions, found: Capacity) -> Section:
    """What ends it, each with its nodes."""
    names = decisions.cluster.nodes.names_by_row()
    by_text: dict[str, list[str]] = {}
    for row, text in found.ends.items():
        by_text.setdefault(text, []).append(names[row])
    ordered = sorted(by_text.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = tuple(
        (f"{in_nodes(len(nodes))}", f"{text}: {listed(sorted(nodes), _MOST_NAMES)}") for text, nodes in ordered
    )
    data = [{"why": text, "nodes": sorted(nodes)} for text, nodes in ordered]
    # A single reason stands in the headline.
    return Section("ends", "What ends it", rows[:_MOST_ROWS] if len(rows) > 1 else (), data=data)


def _told_nodes(decisions: Decisions, found: Capacity, more: Capacity | None) -> Section:
    """Every node, those that take the most first."""
    names = decisions.cluster.nodes.names_by_row()
    rows = tuple(
        (
            Name(names[row], cells.NODES),
            f"{found.counts[row]:,}" + (f" ({more.counts.get(row, 0):,} preempting)" if more is not None else ""),
            found.ends.get(row, ""),
        )
        for row in sorted(found.counts, key=lambda row: (-found.counts[row], names[row]))
    )
    return Section("nodes", "All nodes", rows, ("node", "fit", "what ends it"))


def _table(decisions: Decisions, found: Capacity, more: Capacity | None) -> Table:
    names = decisions.cluster.nodes.names_by_row()
    rows = [
        (names[row], found.counts[row], None if more is None else more.counts.get(row, 0), found.ends.get(row, ""))
        for row in sorted(found.counts, key=names.__getitem__)
    ]
    return Table(("node", "fits", "withPreemption", "whatEndsIt"), tuple(rows), frozenset(("fits", "withPreemption")))
