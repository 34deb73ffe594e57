"""The evaluation for the page's first view: why pods wait and what would help, budgets in the way, and failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podium.api.meta import Raw
from podium.api.objects import label_of
from podium.api.policy import PodDisruptionBudgetStatus
from podium.app.cluster import Cluster
from podium.app.console.cells import by_key, counted
from podium.app.console.output import in_yaml
from podium.app.exporter.evaluation import Evaluation, EvaluationSettings, evaluate
from podium.app.exporter.failures import FITS, GROUPS, NODE, PREEMPTS, UNPLACED
from podium.app.planning.answer import PlanProgress
from podium.app.planning.deciding.capacity import NodeShape, shapes_of
from podium.app.planning.deciding.causes import BlockedPods, blocked_pods, refused_pods
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.search import helpful_changes, nodes_needed, raised_quotas, remedy_of
from podium.app.planning.questions.pending import PendingCause, pending_causes
from podium.app.serving.page.now import MAX_ROWS, few

_MAX_PATCHES = 20
_SHARE_OF_PENDING = 0.4


def evaluated(cluster: Cluster, progress: PlanProgress) -> dict[str, Any]:
    """Return the answers about a cluster, each list with its worst first. Raises InputError for invalid objects."""
    decisions, settings = Decisions(cluster), EvaluationSettings()
    pending = _pending(decisions, lambda share, what: progress(share * _SHARE_OF_PENDING, what))
    progress(_SHARE_OF_PENDING, "failures of nodes, zones and pools")
    found = evaluate(cluster, settings)
    losses = _losses(found, _selectors(decisions, settings))
    blocks = [
        {"budget": budget, "why": _blocked_by(decisions.budgets[budget].status), **few(nodes)}
        for budget, nodes in found.blocks.items()
    ]
    return {**pending, "budgets": blocks[:MAX_ROWS], "undrainable": found.undrainable, "losses": losses}


def _blocked_by(status: PodDisruptionBudgetStatus) -> str:
    """Return why a budget allows no disruption."""
    ready = f"{status.current_healthy:,} of {counted(status.expected_pods, 'pod', 'is')} ready"
    never = ", which no drain can change" if status.desired_healthy >= status.expected_pods else ""
    return f"{ready}, and {status.desired_healthy:,} must be{never}"


def _selectors(decisions: Decisions, settings: EvaluationSettings) -> dict[tuple[str, str], str]:
    """Return the label selector of each zone, pool and rack, by kind and name."""
    nodes, found = decisions.cluster.nodes, dict[tuple[str, str], str]()
    keys = dict(zip(GROUPS, (settings.zone_labels, settings.pool_labels, settings.rack_labels), strict=True))
    for row in nodes.row_of.values():
        labels = nodes.node(row).metadata.labels
        for kind, names in keys.items():
            key = next(filter(labels.get, names), "")
            found.setdefault((kind, labels.get(key, "")), f"{key}={labels.get(key, '')}")
    return found


def _losses(found: Evaluation, selectors: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Return the failures after which pods have no node: of single nodes by workload, and of zones, pools and racks."""
    nodes = found.of_kind(NODE)
    short = by_key((workload, (pods, each)) for each in nodes for workload, pods in each.unplaced_by.items())
    workloads: list[dict[str, Any]] = [
        {
            "workload": workload,
            "pods": max(pods for pods, _ in losses),
            "worst": max(losses, key=lambda loss: loss[0])[1].name,
            "nodes": len(losses),
        }
        for workload, losses in short.items()
    ]
    workloads.sort(key=lambda row: (-row["pods"], -row["nodes"], row["workload"]))
    groups = [each for kind in GROUPS for each in found.of_kind(kind) if each.outcome != FITS]
    return {
        "nodes": len(nodes),
        "unplaced": found.counts[NODE, UNPLACED],
        "preempts": found.counts[NODE, PREEMPTS],
        "workloads": workloads[:MAX_ROWS],
        "number": len(workloads),
        "groups": [
            {
                **{name: getattr(each, name) for name in ("scope", "name", "nodes", "unplaced", "preempted", "first")},
                "number": len(each.unplaced_by),
                "selector": selectors[each.scope, each.name],
            }
            for each in groups[:MAX_ROWS]
        ],
    }


def _pending(decisions: Decisions, progress: PlanProgress) -> dict[str, Any]:
    """Return the causes for which pods wait, each with the cheapest change that helps the most of its pods."""
    with decisions.what_if():
        result = decisions.schedule(decisions.pending, preempts=True)
        waiting = blocked_pods(decisions, result)
        shapes = shapes_of(decisions.cluster, result.waiting)
        refused = refused_pods(decisions)
        changes = [*helpful_changes(decisions, waiting, shapes, progress)[0], *raised_quotas(decisions, refused)]
        changes.sort(key=lambda each: each.order)
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
    """Return the strategic merge patch that makes one form of an object of the other."""
    metadata = {name: after["metadata"][name] for name in ("name", "namespace") if name in after["metadata"]}
    change = dict(_changed(before, after))
    own = change.pop("metadata", {})
    return {"apiVersion": after["apiVersion"], "kind": after["kind"], "metadata": {**metadata, **own}, **change}


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields that differ; of lists, which merge by name, the entries that do if the names are the same.

    A field without a value is one with an empty value, since patches of plans have no nulls.
    """
    absent = {name: type(value)() for name, value in before.items() if name not in after}
    for name, value in {**after, **absent}.items():
        old = before.get(name)
        if old == value:
            continue
        if isinstance(value, dict) and isinstance(old, dict):
            yield name, dict(_changed(old, value))
        elif not isinstance(value, list) or not any("name" in each for each in (*value, *(old or ()))):
            yield name, value
        elif [each.get("name") for each in value] == [each.get("name") for each in old or ()]:
            pairs = zip(old or (), value, strict=True)
            yield name, [{"name": new["name"], **dict(_changed(each, new))} for each, new in pairs if each != new]
        else:
            yield name, [{"$patch": "replace"}, *value]
