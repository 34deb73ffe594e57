"""`podium plan fit`: how many pods like this one fit, where, and what limits their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import count, islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from podium.api import errors, policy
from podium.api.basis import Caveat
from podium.api.input.codec import Document, Input, refuse_empty_pods
from podium.api.meta import Raw, plain
from podium.api.pod import Pod, PodStatus
from podium.api.workloads import WORKLOADS, StatefulSet, pods_wanted
from podium.app.answers import Frame, kinds
from podium.app.cluster import Cluster
from podium.app.console import cells
from podium.app.console.cells import Name, agreeing, by_key, counted, listed
from podium.app.console.page import Section
from podium.app.explaining.workload import next_pods, pods_of
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.constants import MAX_PLACED_PODS
from podium.app.planning.deciding.capacity import Capacity, NodeShape, capacity_of, shapes_of
from podium.app.planning.deciding.causes import blocked_pods
from podium.app.planning.deciding.decisions import Decisions, QueueResult, decided_answer, sampled_decisions
from podium.app.planning.impact import PlanFinding
from podium.app.planning.scenarios import makes_pods, scenario_of_spec, step
from podium.cluster.pods import PodRecord

_MAX_ROWS = 20
_MAX_NAMES = 3
_LABELS = {"podium.dev/plan": "fit"}


class FitOptions(Struct, frozen=True):
    """The options: a number of `replicas` (None: as many as fit), with preemption, after the pending pods.

    With `samples` the replicas are placed so often, with different tie-breaks.
    """

    replicas: int | None = None
    preempts: bool = False
    after_pending: bool = False
    samples: int = 0


class FitTarget(Struct, frozen=True):
    """A pod, the `label` of its workload, and how many pods that wants, None if unknown.

    `maker` is the workload, None for a pod; `known` are the names of its pods in the cluster, if it is a StatefulSet.
    """

    label: str
    pod: Pod
    wanted: int | None = None
    maker: Document | None = None
    known: Collection[str] = ()

    @property
    def stateful_set(self) -> StatefulSet | None:
        """The workload if it is a StatefulSet."""
        item = None if self.maker is None else self.maker.object
        return item if isinstance(item, StatefulSet) else None

    @property
    def comes_in_order(self) -> bool:
        """Return whether a pod is created after the one before it is ready."""
        return self.stateful_set is None or self.stateful_set.spec.pod_management_policy == "OrderedReady"


def fit_target(documents: Sequence[Document]) -> tuple[FitTarget, list[Document]]:
    """Return the only object of the files that makes pods, and all others.

    Raises InputError for none or several, and for pods without containers.
    """
    makers = [document for document in documents if document.object is not None and makes_pods(document.object)]
    if len(makers) != 1:
        known = ", ".join(("Pod", *WORKLOADS))
        problem = f"the files hold {len(makers)} objects that make pods; one is needed: {known}"
        raise errors.InputError(problem, source=documents[0].source if documents else "")
    refuse_empty_pods(makers)
    maker = makers[0]
    rest = [document for document in documents if document is not maker]
    item = maker.object
    if item is None:
        raise AssertionError("an object of a kind that is not read makes no pod")
    label = f"{type(item).__name__} {item.key}"
    if isinstance(item, Pod):
        # The pod before it is scheduled, with a separate uid.
        meta = replace(item.metadata, uid="", deletion_timestamp=None)
        pod = replace(item, metadata=meta, spec=replace(item.spec, node_name=""), status=PodStatus())
        return FitTarget(label, pod), rest
    return FitTarget(label, next(next_pods(maker))[0], pods_wanted(item), maker), rest


def fit_answer(loaded: Cluster, target: FitTarget, options: FitOptions) -> PlanAnswer:
    """Return how many pods fit. Raises InputError for a pod that an API server rejects, and for a wrong number."""
    if options.replicas is not None and not 1 <= options.replicas <= MAX_PLACED_PODS:
        raise errors.InputError(f"replicas: {options.replicas:,} is not from 1 to {MAX_PLACED_PODS:,}")
    decisions = Decisions(loaded)
    if target.stateful_set is not None:
        pods = pods_of(decisions.objects, target.stateful_set)
        target = replace(target, known=[pod.metadata.name for pod in pods])
    with decisions.what_if():
        if options.after_pending:
            decisions.schedule(decisions.pending, preempts=True)
        maker = target.maker
        pod = decisions.create(target.pod) if maker is None else decisions.create_next(maker, target.known)
        caveats = loaded.caveats
        pending = 0 if options.after_pending else len(decisions.pending)
        if pending:
            message = f"{counted(pending, 'pod', 'is')} pending and may take room first; --after-pending lets them"
            caveats += (Caveat("pending", message, pending),)
        if options.replicas is None:
            return _capacity_answer(decisions, target, pod, options, caveats)
        return _replicas_answer(decisions, target, pod, options, options.replicas, caveats)


def _scenario(read: Input, target: FitTarget, options: FitOptions, number: int) -> Raw:
    """Return the scenario that creates so many of the pods by a controller, which replaces those that are preempted.

    It is a ReplicaSet, or the StatefulSet itself, whose other pods stay as they are.
    """
    pod, item, number = target.pod, target.stateful_set, min(number, MAX_PLACED_PODS)
    annotations = {**pod.metadata.annotations, **({} if options.preempts else {policy.POLICY_ANNOTATION: "Never"})}
    kind, name, labels, spec = "ReplicaSet", "plan-fit", {**pod.metadata.labels, **_LABELS}, plain(pod.spec)
    given: Raw = {"selector": {"matchLabels": _LABELS}}
    if item is not None and target.maker is not None:
        kind, name, first = "StatefulSet", item.metadata.name, item.spec.ordinals.start
        given = {**target.maker.raw["spec"], "updateStrategy": {"type": "OnDelete"}}
        labels, spec = given["template"]["metadata"].get("labels", {}), given["template"]["spec"]
        free = (ordinal for ordinal in count(first) if f"{name}-{ordinal}" not in target.known)
        number = next(islice(free, number - 1, None)) + 1 - first
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    maker = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": pod.metadata.namespace or "default"},
        "spec": {**given, "replicas": number, "template": template},
    }
    # The pending pods have their nodes by then.
    at = "1m" if options.after_pending else "0s"
    return scenario_of_spec(read, "fit", {}, [step("apply", [maker], at)])


def _capacity_answer(
    decisions: Decisions, target: FitTarget, pod: PodRecord, options: FitOptions, caveats: tuple[Caveat, ...]
) -> PlanAnswer:
    in_order = target.comes_in_order
    found = capacity_of(decisions, pod, comes_in_order=in_order)
    more = capacity_of(decisions, pod, preempts=True, comes_in_order=in_order) if options.preempts else None
    data = {
        "pod": target.label,
        "fits": found.total,
        "atLeast": found.is_cut,
        "nodes": sum(map(bool, found.counts.values())),
        "wanted": target.wanted,
        "withPreemption": None if more is None else more.total,
        "why": found.before or None,
    }
    names = list(decisions.cluster.nodes.names)
    findings: tuple[PlanFinding, ...] = ()
    if not found.total or (target.wanted is not None and found.total < target.wanted):
        wanted = "" if target.wanted is None else f" of {target.wanted:,}"
        why = f": {found.before}" if found.before else ""
        text = f"{counted(found.total, 'pod')}{wanted} of {target.label} fit{why}"
        findings = (PlanFinding("unschedulable", text, (target.label,)),)
    table: list[dict[str, Any]] = [
        {
            "node": names[row],
            "fits": found.counts[row],
            "withPreemption": None if more is None else more.counts.get(row, 0),
            "limit": found.limits.get(row, ""),
        }
        for row in sorted(found.counts, key=names.__getitem__)
    ]
    every_node = tuple(
        (
            Name(each["node"], cells.NODES),
            f"{each['fits']:,}" + (f" ({each['withPreemption']:,} preempting)" if more is not None else ""),
            each["limit"],
        )
        for each in sorted(table, key=lambda each: (-each["fits"], each["node"]))
    )
    return decided_answer(
        decisions,
        "fit",
        _capacity_headline(len(decisions.cluster.nodes), target, found, more),
        (
            Section("fit", "", (), data=data),
            _shapes_section(shapes_of(decisions.cluster, [pod]), found, more),
            _limits_section(names, found),
        ),
        findings=findings,
        caveats=caveats,
        scenario=_scenario(decisions.loaded.read, target, options, (more or found).total + 1),
        further=(Section("nodes", "All nodes", every_node, ("node", "fit", "limit")),),
        table=Frame.of_rows("table", table, {**kinds("node", "fits withPreemption"), **kinds("limit")}),
    )


def _capacity_headline(nodes: int, target: FitTarget, found: Capacity, more: Capacity | None) -> str:
    preempting = "" if more is None else f"; {more.total:,} if all pods that it may preempt left"
    if found.before:
        return f"none of {target.label} fits: {found.before}{preempting if more is not None and more.total else ''}"
    text = f"none of {target.label} fits on any of {counted(nodes, 'node')}"
    if found.total:
        least = "at least " if found.is_cut else ""
        where = f"on {sum(map(bool, found.counts.values())):,} of {counted(nodes, 'node')}"
        text = f"{least}{found.total:,} of {target.label} {agreeing(found.total, 'fits')}, {where}"
    text += (f", {target.wanted:,} wanted" if target.wanted is not None else "") + preempting
    if found.nearest:
        return f"{text}; in the way {found.nearest}"
    if not found.limits:
        return text
    # The limit of most nodes that take pods, or for a gang of most nodes if none does. Its number of nodes is that of
    # the section "Limits": it includes nodes that take none for the same reason.
    takers = [row for row in found.limits if found.counts.get(row)] or list(found.limits)
    reasons = _tally(found.limits[row] for row in takers)
    limit = reasons[0][0]
    on = f" on {counted(Counter(found.limits.values())[limit], 'node')}" if len(reasons) > 1 else ""
    return f"{text}; {'limit' if found.total else 'in the way'}{on}: {limit}"


def _shapes_section(shapes: Sequence[NodeShape], found: Capacity, more: Capacity | None) -> Section:
    """Return how many fit by shape of node, those that take the most first."""

    def total(capacity: Capacity, shape: NodeShape) -> int:
        return sum(capacity.counts.get(row, 0) for row in shape.rows)

    rows, data = [], []
    ordered = sorted(shapes, key=lambda shape: (-total(found, shape), -len(shape.rows), shape.representative))
    for shape in ordered if found.counts else ():
        numbers = [found.counts.get(row, 0) for row in shape.rows]
        least, most = min(numbers), max(numbers)
        limits = _tally(found.limits[row] for row in shape.rows if row in found.limits)
        preempting = [] if more is None else [total(more, shape)]
        data.append(
            {
                "shape": shape.text,
                "like": shape.representative,
                "nodes": len(shape.rows),
                "fits": total(found, shape),
                "withPreemption": preempting[0] if preempting else None,
                "perNode": {"least": least, "most": most},
                "limits": [{"why": why, "nodes": number} for why, number in limits],
            }
        )
        counts = [f"{number:,}" for number in (total(found, shape), *preempting, len(shape.rows))]
        each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        why = [f"{why} ({number:,})" if len(limits) > 1 else why for why, number in limits[:_MAX_NAMES]]
        rows.append((*counts, each, shape.text, "; ".join(why)))
    headings = ("fit", *(() if more is None else ("preempting",)), "nodes", "on each", "like", "limit")
    return Section("shapes", "Where", tuple(rows), headings, "by shape of node", data, most=_MAX_ROWS, noun="shape")


def _limits_section(names: Sequence[str], found: Capacity) -> Section:
    by_text = by_key((text, names[row]) for row, text in found.limits.items())
    ordered = sorted(by_text.items(), key=lambda item: (-len(item[1]), item[0]))
    data = [{"why": text, "nodes": sorted(nodes)} for text, nodes in ordered]
    # The headline has a single reason.
    shown = data[:_MAX_ROWS] if len(data) > 1 else []
    rows = [
        (counted(len(each["nodes"]), "node"), f"{each['why']}: {listed(each['nodes'], _MAX_NAMES)}") for each in shown
    ]
    return Section("limits", "Limits", tuple(rows), data=data)


def _replicas_answer(
    decisions: Decisions,
    target: FitTarget,
    pod: PodRecord,
    options: FitOptions,
    replicas: int,
    caveats: tuple[Caveat, ...],
) -> PlanAnswer:
    copies = tuple(decisions.copies(pod, replicas))
    outcomes = sampled_decisions(decisions, copies, options.samples, preempts=options.preempts)
    result = _scheduled(decisions, target, copies, options)
    why = blocked_pods(decisions, result)
    placed = Counter(each.node for each in result.placed)
    victims = result.victims_by(decisions.workloads)
    preempting = sum(bool(each.victims) for each in result.placed)
    data = {
        "pod": target.label,
        "fits": len(result.placed),
        "wanted": replicas,
        "preempting": preempting,
        "why": why[0].text if why else None,
    }
    by = f", {preempting:,} of them by preempting {counted(victims.total(), 'pod')}" if victims else ""
    if result.waiting:
        gets = f"{len(result.placed):,} of {replicas:,} of {target.label} {agreeing(len(result.placed), 'gets')}"
        headline = f"{gets} a node{by}; limit: {why[0].text}"
    else:
        get = f"all {replicas:,} of {target.label} get" if replicas > 1 else f"one of {target.label} gets"
        headline = f"{get} a node{by}"
    findings = []
    if victims:
        text = f"{counted(victims.total(), 'pod')} would be preempted"
        findings.append(PlanFinding("preempt", text, tuple(sorted(victims))))
    if result.waiting:
        missing = replicas - len(result.placed)
        text = f"{counted(missing, 'pod')} of {target.label} {agreeing(missing, 'gets')} no node: {why[0].text}"
        findings.append(PlanFinding("unschedulable", text, (target.label,)))
    nodes = sorted(decisions.cluster.nodes.row_of, key=lambda node: (-placed[node], node))
    every_node = tuple((Name(node, cells.NODES), f"{placed[node]:,}") for node in nodes)
    taken = [(Name(node, cells.NODES), counted(placed[node], "pod")) for node in nodes if placed[node]]
    by_node: list[dict[str, Any]] = [{"node": node, "pods": number} for node, number in sorted(placed.items())]
    lost = sorted(victims.items())
    rows = tuple((f"{number:,}", Name(workload, cells.WORKLOADS)) for workload, number in lost[:_MAX_ROWS])
    limits = by_key((each.text, len(each.pods)) for each in why)
    if later := replicas - len(result.placed) - len(result.waiting):
        limits["created after the one before them is ready"] = [later]
    return decided_answer(
        decisions,
        "fit",
        headline,
        (
            Section("fit", "", (), data=data),
            Section("placed", "Where they go", tuple(taken), data=by_node, most=_MAX_ROWS, noun="node"),
            Section("victims", "Preempted", rows, data=dict(lost)),
            Section.of(
                "limits",
                "Limits",
                ({"pods": sum(numbers), "why": text} for text, numbers in limits.items()),
                lambda each: (f"{each['pods']:,} {agreeing(each['pods'], 'waits')}", each["why"]),
            ),
        ),
        outcomes,
        findings=tuple(findings),
        caveats=(*caveats, *result.caveats),
        scenario=_scenario(decisions.loaded.read, target, options, replicas),
        further=(Section("nodes", "All nodes", every_node, ("node", "pods")),),
        table=Frame.of_rows("table", by_node, kinds("node", "pods")),
    )


def _scheduled(
    decisions: Decisions, target: FitTarget, copies: Sequence[PodRecord], options: FitOptions
) -> QueueResult:
    """Place the copies; of a StatefulSet that creates them in order, only until one gets no node."""
    if target.stateful_set is None or not target.comes_in_order:
        return decisions.schedule(copies, preempts=options.preempts)
    results: list[QueueResult] = []
    for each in copies:
        results.append(decisions.schedule([each], preempts=options.preempts))
        if results[-1].waiting:
            break
    return replace(results[-1], placed=tuple(placed for result in results for placed in result.placed))


def _tally(texts: Iterable[str]) -> list[tuple[str, int]]:
    return sorted(Counter(texts).items(), key=lambda item: (-item[1], item[0]))
