"""The evaluation for the page's first view: why pods wait and what would help, budgets in the way, and failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import msgspec

from podium.api.meta import Raw
from podium.api.objects import label_of
from podium.apirequests.status_reports import strategic_diff
from podium.app.cluster import Cluster
from podium.app.console.cells import by_key
from podium.app.console.output import in_yaml
from podium.app.exporter.evaluation import Evaluation, EvaluationSettings, blocked_nodes, evaluate
from podium.app.exporter.failures import FITS, GROUPS, NODE, PREEMPTS, UNPLACED
from podium.app.planning.answer import PlanProgress
from podium.app.planning.deciding.capacity import NodeShape, shapes_of
from podium.app.planning.deciding.causes import BlockedPods, blocked_pods, refused_pods
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.search import helpful_changes, nodes_needed, raised_quotas, remedy_of
from podium.app.planning.questions.pending import PendingCause, pending_causes
from podium.app.serving.page.now import MAX_ROWS, few
from podium.store.strategic_patch import merge_schema_of

_MAX_PATCHES = 20
_MAX_NODES = 1_000
_SHARE_OF_PENDING = 0.4


def evaluated(cluster: Cluster, progress: PlanProgress, part: Callable[[Any], None]) -> dict[str, Any]:
    """Return the answers about a cluster, each list with its worst first. Raises InputError for invalid objects.

    ``part`` receives what is known before the failures, which take long.
    """
    decisions, settings = Decisions(cluster), EvaluationSettings()
    pending = _pending(decisions, lambda share, what: progress(share * _SHARE_OF_PENDING, what))
    blocks = blocked_nodes(decisions)
    budgets = [
        {"budget": budget, "status": decisions.budgets[budget].status, **few(nodes)}
        for budget, nodes in islice(blocks.items(), MAX_ROWS)
    ]
    undrainable = len(set().union(*blocks.values()))
    part({**pending, "budgets": msgspec.to_builtins(budgets), "undrainable": undrainable})
    progress(_SHARE_OF_PENDING, "failures of nodes, zones and pools")
    found = evaluate(decisions, settings)
    return {"losses": {**_losses(found), "groups": _groups(found, decisions, settings)}}


def _losses(found: Evaluation) -> dict[str, Any]:
    """Return the workloads that are short of pods after the failure of single nodes, those of the most pods first."""
    nodes = found.of_kind(NODE)
    short = by_key((workload, (pods, each.name)) for each in nodes for workload, pods in each.unplaced_by.items())
    worst = {workload: max(losses, key=lambda loss: loss[0]) for workload, losses in short.items()}
    order = sorted(short, key=lambda workload: (-worst[workload][0], -len(short[workload]), workload))
    rows = [
        {"workload": workload, "pods": worst[workload][0], "worst": worst[workload][1], "nodes": len(short[workload])}
        for workload in order[:MAX_ROWS]
    ]
    counts = {outcome: found.counts[NODE, outcome] for outcome in (UNPLACED, PREEMPTS)}
    worst_nodes = {each.name: each.unplaced for each in nodes[:_MAX_NODES] if each.unplaced}
    return {"nodes": len(nodes), **counts, "workloads": rows, "number": len(short), "short": worst_nodes}


def _groups(found: Evaluation, decisions: Decisions, settings: EvaluationSettings) -> list[dict[str, Any]]:
    """Return the failures of zones, pools and racks after which pods move others or find no place."""
    nodes = decisions.cluster.nodes
    labels = {label for row in nodes.row_of.values() for label in nodes.node(row).metadata.labels.items()}
    keys = dict(zip(GROUPS, (settings.zone_labels, settings.pool_labels, settings.rack_labels), strict=True))
    return [
        {
            **{name: getattr(each, name) for name in ("scope", "name", "nodes", "unplaced", "preempted", "first")},
            "number": len(each.unplaced_by),
            "selector": next(f"{key}={each.name}" for key in keys[each.scope] if (key, each.name) in labels),
        }
        for each in islice((each for kind in GROUPS for each in found.of_kind(kind) if each.outcome != FITS), MAX_ROWS)
    ]


def _pending(decisions: Decisions, progress: PlanProgress) -> dict[str, Any]:
    """Return the causes for which pods wait, each with the cheapest change that helps the most of its pods."""
    with decisions.what_if():
        result = decisions.schedule(decisions.pending, preempts=True)
        waiting = blocked_pods(decisions, result)
        shapes = shapes_of(decisions.cluster, result.waiting)
        refused = refused_pods(decisions)
        changes = [*helpful_changes(decisions, waiting, shapes, progress)[0], *raised_quotas(decisions, refused)]
        causes = [
            {
                "reason": cause.text,
                **few([pod.key for pod in cause.pods]),
                "workloads": few(list(cause.workloads)),
                "fix": _fix(decisions, cause, waiting, shapes),
            }
            for cause in pending_causes(decisions, waiting, changes)[:MAX_ROWS]
        ]
    return {
        "causes": causes,
        "fitting": few([each.pod.key for each in result.placed]),
        "refused": [{"workload": each.workload, "pods": each.number, "why": each.text} for each in refused[:MAX_ROWS]],
    }


def _fix(
    decisions: Decisions, cause: PendingCause, waiting: Sequence[BlockedPods], shapes: Sequence[NodeShape]
) -> dict[str, Any] | None:
    """Return the best change in words, how many pods it places, and the question of the page that tries it."""
    if cause.best is None:
        return None
    change, fix = cause.best.change, {"text": cause.change, "placed": cause.placed, "preempted": cause.best.preempted}
    if change.type == "node":
        shape = next(each for each in shapes if change.text.endswith(f" like {each.like}"))
        uids = {pod.uid for pod in cause.pods}
        own = [each for each in waiting if each.pods[0].uid in uids]
        number, placed = nodes_needed(decisions, own, shape) if cause.placed < len(cause.pods) else (0, 0)
        if placed > cause.placed:
            fix |= {"text": f"{number:,} more nodes like {shape.like}", "placed": placed}
        return {**fix, "question": "nodes", "values": {"add": str(max(number, 1)), "like": shape.like}}
    remedy = remedy_of(decisions, change, cause.pods)
    before = {label_of(each.raw): each.raw for each in decisions.loaded.read.documents} if remedy else {}
    objects = remedy.objects if remedy else ()
    if not objects or not all(label_of(each) in before for each in objects):
        return fix
    patches = [_patch(before[label_of(each)], each) for each in objects[:_MAX_PATCHES]]
    return {**fix, "question": "patch", "values": {"manifests": "---\n".join(map(in_yaml, patches))}}


def _patch(before: Raw, after: Raw) -> Raw:
    """Return the strategic merge patch between two forms of an object, without nulls, which plans ignore."""
    if "spec" in after:
        absent = {name: type(value)() for name, value in before.get("spec", {}).items() if name not in after["spec"]}
        after = {**after, "spec": {**after["spec"], **absent}}
    change = strategic_diff(before, after, merge_schema_of(after["kind"]))
    name = {field: after["metadata"][field] for field in ("name", "namespace") if field in after["metadata"]}
    type_ = {"apiVersion": after["apiVersion"], "kind": after["kind"]}
    return {**type_, **change, "metadata": {**name, **change.get("metadata", {})}}
