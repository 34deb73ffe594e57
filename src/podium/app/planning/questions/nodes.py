"""`podium plan drain`, `fail` and `nodes`: the effects of drained, failed, added and removed nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, islice, pairwise
from typing import Any

from msgspec import Struct

from podium.api.budget_limits import pods_of_share
from podium.api.errors import InputError
from podium.api.input.codec import Document, Input
from podium.api.kinds import manifest_of
from podium.api.meta import Raw, value_at
from podium.api.node import Node
from podium.api.times import SECOND, format_duration
from podium.app.console.cells import NODES, Name, Part, counted
from podium.app.console.page import Section, listed
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.constants import MAX_ADDED_NODES
from podium.app.planning.deciding.capacity import as_new, copies_of, reports_by_node
from podium.app.planning.impact import drain_reason, impact_text, new_holds, pods_left
from podium.app.planning.question import PlanQuestion, PlanRun, PlayedPlan
from podium.app.planning.scenarios import chosen_nodes, nodes_text, step
from podium.decide.node_reports import NodeReport
from podium.sim.results.measures import BudgetHealth, RefusedEviction


class PlannedDrain(Struct, frozen=True):
    """The options of `kubectl drain`; `parallel` drains all nodes at once instead of one after another."""

    parallel: bool = False
    timeout_ns: int | None = None
    grace_seconds: int | None = None
    force: bool = False
    delete_emptydir_data: bool = False
    disable_eviction: bool = False


def drain_question(nodes: Sequence[str], options: PlannedDrain, *, removes: bool = False) -> PlanQuestion:
    """Return the question about a drain. All nodes are cordoned first, so that none takes the others' pods."""
    cordons = [step("cordon", {"name": node}) for node in nodes] if len(nodes) > 1 else []
    before = {} if options.parallel else {node: earlier for earlier, node in pairwise(nodes)}
    fields = {
        "timeout": None if options.timeout_ns is None else format_duration(options.timeout_ns),
        "gracePeriodSeconds": options.grace_seconds,
        "force": options.force or None,
        "deleteEmptyDirData": options.delete_emptydir_data or None,
        "disableEviction": options.disable_eviction or None,
        "removeNode": removes or None,
    }
    drains = []
    for node in nodes:
        drain: Raw = {"name": node, "after": before.get(node), **fields}
        drains.append(step("drain", {key: value for key, value in drain.items() if value is not None}))
    return PlanQuestion("drain", (*cordons, *drains))


def drain(run: PlanRun, names: Sequence[str], selector: str, options: PlannedDrain) -> PlanAnswer:
    """Answer what a drain of nodes does, by name and by labels."""
    nodes = chosen_nodes(run.read, names, selector)
    played = run.play(drain_question(nodes, options))
    reports = _reports(played)
    bad = [report for report in reports if report["state"] != "drained"]
    headline = f"drain of {nodes_text(nodes, labels='' if names else selector)}"
    if bad:
        headline = f"drain of {bad[0]['node']}" if len(nodes) > 1 else headline
        done = f" ({len(reports) - len(bad):,} of {len(nodes):,} nodes are drained)" if len(nodes) > 1 else ""
        headline += f" {_state(played, bad[0])}: {drain_reason(played.result, bad[0])}{done}"
    elif len(reports) < len(nodes):
        headline += f" reaches {len(reports):,} of {len(nodes):,} nodes"
    else:
        # The time until the last pod left its node.
        pods = (pod for pod in played.result.pods if pod["node"] in nodes and pod["endedAt"] is not None)
        ended = [pod["endedAt"] for pod in pods if not pod["workload"].startswith("DaemonSet ")]
        duration = format_duration(round(max(ended, default=0) * SECOND))
        headline += f" takes {duration}: {impact_text(played.impact)}"
    return played.answer(headline, sections=_drain_sections(played))


def _drain_sections(played: PlayedPlan) -> list[Section]:
    """Return the sections on how far each drain came, and how to unblock those that are stuck."""

    def row(report: dict[str, Any]) -> tuple[Part, ...]:
        gone, left = sum(pod["state"] == "gone" for pod in report["pods"]), len(pods_left(report))
        rest = f", {left:,} left" if left else ""
        reason = "" if report["state"] == "drained" else drain_reason(played.result, report)
        return Name(report["node"], NODES), str(report["state"]), f"{gone:,} gone{rest}", reason

    reports, holds = _reports(played), new_holds(played.result, played.baseline)
    refused = (pod for report in reports if report["state"] == "refused" for pod in report["pods"])
    texts = [_advice(played, hold) for hold in holds if hold.until_ns is None]
    texts += [f"{pod['pod']}: {pod['reason']}" for pod in refused if pod["state"] == "refused"]
    advice = list(dict.fromkeys(texts))
    section = Section("unblock", "To unblock it", tuple((text,) for text in advice), data=advice)
    return [Section.of("drains", "Drains", reports, row), *([section] if advice else [])]


def fail(run: PlanRun, names: Sequence[str], selector: str, for_ns: int | None = None) -> PlanAnswer:
    """Answer what happens if nodes fail at once, by name and by labels, for so long; None: for good."""
    nodes = chosen_nodes(run.read, names, selector)
    steps = [step("nodeDown", {"name": node}) for node in nodes]
    if for_ns is not None:
        steps += [step("nodeUp", {"name": node}, format_duration(for_ns)) for node in nodes]
    played = run.play(PlanQuestion("fail", tuple(steps)))
    what = nodes_text(nodes, labels="" if names else selector)
    return played.answer(f"failure of {what}: {impact_text(played.impact)}")


def _reports(played: PlayedPlan) -> list[dict[str, Any]]:
    drained = {step["drain"]["name"] for step in played.question.steps if "drain" in step}
    return [report for report in played.result.summary["drains"] if report["node"] in drained]


def _state(played: PlayedPlan, report: dict[str, Any]) -> str:
    drains = (each.get("drain", {}) for each in played.question.steps)
    timeout = next((drain.get("timeout", "") for drain in drains if drain.get("name") == report["node"]), "")
    return {
        "timed-out": f"timed out after {timeout}" if timeout else "timed out",
        "refused": "is refused",
        "withdrawn": "was withdrawn",
        "blocked": "is blocked",
    }.get(report["state"], "is not finished at the end")


def _advice(played: PlayedPlan, hold: RefusedEviction) -> str:
    if not hold.budgets:
        return f"{hold.pod}: {hold.message}"
    if len(hold.budgets) > 1:
        return f"leave {hold.pod} one budget of {', '.join(hold.budgets)}, or set severalBudgets: RequireAll"
    budget = hold.budgets[0]
    health = next((found for found in played.result.measures.budgets if found.budget == budget), None)
    if health is None:
        return f"see budget {budget}"
    lacking = health.desired - health.healthy + 1
    if lacking <= 0:
        return f"{hold.pod}: {hold.message}"
    if lacking <= health.expected - health.healthy:
        return (
            f"bring {counted(lacking, 'more pod')} of budget {budget} to readiness "
            f"({health.healthy:,} ready, {health.desired:,} required), or lower its minimum"
        )
    state, more = f"({health.healthy:,} healthy, {health.desired:,} required)", _pods_that_help(health)
    change = "raise maxUnavailable" if health.spec.min_available is None else "lower minAvailable"
    rest = "or delete past budgets with --disable-eviction"
    if more:
        ready = " and make all of them ready" if health.healthy < health.expected else ""
        return f"scale up the pods of budget {budget} by {more:,}{ready} {state}, {change}, {rest}"
    return f"{change} of {budget} {state}, {rest}"


def _pods_that_help(health: BudgetHealth) -> int:
    """Return with how many further pods, all ready, a budget allows a disruption; 0 if it never does."""
    least = health.spec.min_available
    if least is None:
        return 0
    numbers = range(health.expected + 1, health.expected + health.desired + 101)
    return next((number - health.expected for number in numbers if number > pods_of_share(least, number)), 0)


def change_nodes(
    run: PlanRun, documents: Sequence[Document], *, add: int, like: str, remove: Sequence[str], selector: str
) -> PlanAnswer:
    """Answer what happens if nodes are added, and others are drained and deleted, one after another.

    ``add`` is the number of new nodes ``like`` one of the cluster, or of copies of each of the documents' nodes, with
    their reports; 0 means one of each. Raises InputError without any node to add or remove, and for too many.
    """
    nodes, reports = _nodes_of(documents)
    if add < 0:
        raise InputError(f"add: {add} is negative")
    if like and not add:
        raise InputError("like: give the number of nodes with add")
    if not (like or nodes) and (add or not (remove or selector)):
        raise InputError("which nodes to add or remove? give --add with --like or a file of nodes, or --remove")
    known = run.read.of_kind("Node")
    number = (add if like else 0) + (add or 1) * len(nodes)
    if number > MAX_ADDED_NODES:
        raise InputError(f"{number:,} nodes are added; a plan adds {MAX_ADDED_NODES:,} at most")
    models = chosen_nodes(run.read, [like]) if like else []
    if len(models) > 1:
        raise InputError(f"like: {like} means {len(models):,} nodes; name one: {listed(models, 3)}")
    added = [item for name in models for item in _copies(known[name], {}, add, run.read, "plan-node")]
    for document in nodes:
        added += _copies(document, reports, add or 1, run.read)
    removed = chosen_nodes(run.read, remove, selector) if remove or selector else []
    steps = [step("apply", added)] if added else []
    if removed:
        steps += drain_question(removed, PlannedDrain(force=True, delete_emptydir_data=True), removes=True).steps
    played = run.play(PlanQuestion("nodes", tuple(steps)))
    new = [item["metadata"]["name"] for item in added if item["kind"] == "Node"]
    parts = [f"{what} {nodes_text(names)}" for what, names in (("adding", new), ("removing", removed)) if names]
    text = impact_text(played.impact)
    bad = next((report for report in _reports(played) if report["state"] != "drained"), None)
    if bad is not None:
        text = f"the drain of {bad['node']} {_state(played, bad)}: {drain_reason(played.result, bad)}"
    before, after = (sum(pod["state"] == "pending" for pod in run.pods) for run in (played.baseline, played.result))
    if before or after:
        text = f"{counted(after, 'pod', 'waits')} for a node at the end, {before:,} without it; {text}"
    return played.answer(f"{' and '.join(parts)}: {text}", sections=_drain_sections(played) if removed else [])


def _nodes_of(documents: Sequence[Document]) -> tuple[list[Document], dict[str, list[NodeReport]]]:
    """Return the nodes among documents, and the reports by node. Raises InputError for reports of another node."""
    nodes = [document for document in documents if not isinstance(document.object, NodeReport)]
    reports = reports_by_node(document.object for document in documents)
    if others := reports.keys() - {value_at(document.raw, "metadata", "name") for document in nodes}:
        problem = f"the CSINode or ResourceSlice of {min(others) or 'no node'} needs a Node of that name beside it"
        raise InputError(problem, source=documents[0].source)
    return nodes, reports


def _copies(
    document: Document, given: Mapping[str, list[NodeReport]], number: int, read: Input, stem: str = ""
) -> list[Raw]:
    """Return new nodes like a document's and what they report, with names that begin with ``stem`` or its own.

    Without a stem, a single one keeps its name unless that is taken. Reports that are not ``given`` are the cluster's.
    """
    node, known = document.object, read.of_kind("Node")
    if not isinstance(node, Node):
        raise document.located(InputError(f"is a {document.raw.get('kind')}, not a Node"))
    name = node.metadata.name
    if not stem and number == 1 and name not in known:
        return [document.raw, *map(manifest_of, given.get(name, ()))]
    reports = given.get(name) or reports_by_node(each.object for each in read.documents).get(name, [])
    names = (f"{stem or name}-{place}" for place in count(1))
    free = islice((name for name in names if name not in known), number)
    return [manifest_of(item) for name in free for item in copies_of(as_new(node), reports, name)]
