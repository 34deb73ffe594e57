"""The answers to the page's questions: those of `podium plan` and `podium explain`, and what is wrong in a cluster."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import click
import msgspec

from podium.api.errors import InputError
from podium.api.input.codec import Document, Input, load_text, objects_in
from podium.api.meta import Raw
from podium.api.objects import label_of
from podium.apirequests.status_reports import strategic_diff
from podium.app.cluster import Cluster
from podium.app.console.cells import by_key
from podium.app.console.output import in_yaml
from podium.app.console.page import Page
from podium.app.explaining.command import explain
from podium.app.explaining.on_node import answer_on, verdict_table
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.exporter import evaluation
from podium.app.exporter.evaluation import GROUPS, NODE, Evaluation, EvaluationSettings
from podium.app.exporter.failures import FITS, PREEMPTS, UNPLACED
from podium.app.inputs import DecisionSettings
from podium.app.planning.answer import PlanAnswer, PlanProgress, write_answer
from podium.app.planning.command import plan
from podium.app.planning.deciding.capacity import NodeShape, shapes_of
from podium.app.planning.deciding.causes import BlockedPods, blocked_pods, refused_pods
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.search import helpful_changes, nodes_needed, raised_quotas, remedy_of
from podium.app.planning.question import PlanRun
from podium.app.planning.questions.diff import UNCHANGED, Setting, read_setting
from podium.app.planning.questions.pending import PendingCause, pending_causes
from podium.app.reporting.pictures import picture_of
from podium.app.serving.page.forms import EXPLAIN, FORMS
from podium.app.serving.page.now import MAX_ROWS, NOW, first_names
from podium.framework.rescheduling.configuration import ReschedulerConfiguration, default_rescheduler, parse_rescheduler
from podium.sim.run_options import RunOptions
from podium.store.strategic_patch import merge_schema_of

_MANIFESTS = "the manifests"
_MAX_NODES = 1_000
_SHARE_OF_PENDING = 0.4


@dataclass(slots=True)
class PageInputs:
    """The inputs of a command of `podium plan` on the page: a cluster, and texts in place of files.

    It has the methods of `podium.app.planning.options.QuestionInputs` that commands call; ``found`` is the answer.
    """

    read: Input
    options: RunOptions
    progress: PlanProgress
    samples: int = 0
    found: PlanAnswer | None = None

    def documents(self, texts: Sequence[str]) -> list[Document]:
        """Return the objects in YAML or JSON. Raises InputError."""
        return [document for text in texts for document in load_text(text, _MANIFESTS)]

    def patches(self, texts: Sequence[str]) -> list[Raw]:
        """Return the documents in YAML or JSON, which are no whole objects. Raises InputError."""
        return [patch for text in texts for patch in objects_in(text.encode(), _MANIFESTS)]

    def rescheduler(self, text: str) -> ReschedulerConfiguration:
        """Return the configuration; a cautious one without a text. Raises InputError."""
        return parse_rescheduler(text, "the configuration") if text else default_rescheduler()

    def setting(self, name: str, texts: Sequence[str]) -> Setting:
        """Return the setting of a name; that of the cluster without a text. Raises InputError."""
        return read_setting(name if texts else UNCHANGED, self.documents(texts))

    def load(self) -> Cluster:
        """Return the cluster, for questions that are decided."""
        options = self.options
        return Cluster(self.read, DecisionSettings(options.configuration, options.release, options.ignore_extenders))

    def show(self, doing: str, ask: Callable[[PlanProgress], PlanAnswer]) -> None:
        """Answer a question that is decided."""
        self.found = ask(self.progress)

    def answer(self, question: Callable[..., PlanAnswer], *arguments: Any, doing: str = "", **options: Any) -> None:
        """Answer a question that is played."""
        self.found = question(PlanRun(self.read, self.options, self.progress, forks=True), *arguments, **options)


def answer_question(
    read: Input,
    name: str,
    given: Any,
    options: RunOptions,
    progress: PlanProgress,
    part: Callable[[Any], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the picture of the answer to a question, and the scenario that was played; or the evaluation of `NOW`.

    ``part`` receives the first part of an evaluation. Raises PodiumError.
    """
    if name == NOW:
        return evaluated(PageInputs(read, options, progress).load(), progress, part)
    form = FORMS.get(name)
    if form is None:
        raise InputError(f"there is no such question; there are {', '.join(FORMS)}", path=".question")
    if form is EXPLAIN:
        return _explained(PageInputs(read, options, progress), **form.arguments(explain, given))
    command = plan.commands[name]
    arguments = form.arguments(command, given)
    if form.rest:
        played = {field.parameter: (field, arguments.pop(field.parameter)) for field in form.rest}
        stated = {parameter: value for parameter, (field, value) in played.items() if given.get(field.name)}
        options = replace(options, **{"until_ns": None, **stated}, records_placements=True)
    inputs = PageInputs(read, options, progress)
    try:
        inspect.unwrap(command.callback or _explained)(inputs=inputs, **arguments)
    except click.UsageError as error:
        raise InputError(error.message) from None
    answer = inputs.found
    if answer is None:
        raise AssertionError(f"{name} gives no answer")
    page = Page()
    write_answer(page, answer)
    picture = msgspec.structs.replace(picture_of(answer), text=page.text)
    # To show an answer that was not played, the scenario needs the cluster: the command saves both.
    scenario = None if answer.result is None else answer.scenario
    return {"picture": msgspec.to_builtins(picture), "scenario": scenario, "onNodes": _on_nodes(answer)}


def _on_nodes(answer: PlanAnswer) -> dict[str, Any]:
    """Return what an answer says about nodes, and the pods of each at the end without the plan and with it."""
    known = {section.name: section.data for section in (*answer.sections, *answer.further)}
    runs = (answer.baseline, answer.result) if answer.baseline is not None else ()
    pods = [{node.node: node.pods for node in run.nodes} for run in runs if run is not None]
    found = {"table": list(answer.table or ()), "changed": {node.node: node.change for node in answer.nodes}}
    return {**found, "placed": known.get("placed"), "obstacles": known.get("obstacles"), "pods": pods}


def _explained(inputs: PageInputs, *, target: str, namespace: str, node: str | None, scheduler: str) -> dict[str, Any]:
    """Return the picture of the decision, and every plugin's verdict on every node."""
    answer = inputs.load().ask(target, namespace, scheduler)
    explanation = answer.explanation if isinstance(answer, WorkloadExplanation) else answer
    picture = picture_of(answer_on(explanation, node) if node else answer)
    return {"picture": msgspec.to_builtins(picture), "table": verdict_table(explanation)}


def evaluated(cluster: Cluster, progress: PlanProgress, part: Callable[[Any], None]) -> dict[str, Any]:
    """Return the answers about a cluster, each list with its worst first. Raises InputError for invalid objects.

    ``part`` receives what is known before the failures, which take long.
    """
    decisions, settings = Decisions(cluster), EvaluationSettings()
    pending = _pending(decisions, lambda share, what: progress(share * _SHARE_OF_PENDING, what))
    blocks = evaluation.blocked_nodes(decisions)
    budgets = [
        {"budget": budget, "status": decisions.cluster.budgets.objects[budget].status, **first_names(nodes)}
        for budget, nodes in islice(blocks.items(), MAX_ROWS)
    ]
    part({**pending, "budgets": msgspec.to_builtins(budgets), "undrainable": len(set().union(*blocks.values()))})
    progress(_SHARE_OF_PENDING, "failures of nodes, zones and pools")
    found = evaluation.evaluate(decisions, settings)
    return {"losses": {**_losses(found), "groups": _groups(found, decisions, settings)}}


def _losses(found: Evaluation) -> dict[str, Any]:
    """Return the workloads that are short of pods after the failure of a single node, the shortest first."""
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
                **first_names([pod.key for pod in cause.pods]),
                "workloads": first_names(list(cause.workloads)),
                "fix": _fix(decisions, cause, waiting, shapes),
            }
            for cause in pending_causes(decisions, waiting, changes)[:MAX_ROWS]
        ]
    return {
        "causes": causes,
        "fitting": first_names([each.pod.key for each in result.placed]),
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
        shape = next(each for each in shapes if change.text.endswith(f" like {each.representative}"))
        uids = {pod.uid for pod in cause.pods}
        own = [each for each in waiting if each.pods[0].uid in uids]
        number, placed = nodes_needed(decisions, own, shape) if cause.placed < len(cause.pods) else (0, 0)
        if placed > cause.placed:
            fix |= {"text": f"{number:,} more nodes like {shape.representative}", "placed": placed}
        return {**fix, "question": "nodes", "values": {"add": str(max(number, 1)), "like": shape.representative}}
    remedy = remedy_of(decisions, change, cause.pods)
    before = {label_of(each.raw): each.raw for each in decisions.loaded.read.documents} if remedy else {}
    objects = remedy.objects if remedy else ()
    if not objects or not all(label_of(each) in before for each in objects):
        return fix
    patches = [_patch(before[label_of(each)], each) for each in objects[:20]]
    return {**fix, "question": "change", "values": {"patch-file": "---\n".join(map(in_yaml, patches))}}


def _patch(before: Raw, after: Raw) -> Raw:
    """Return the strategic merge patch between two forms of an object, without nulls, which plans ignore."""
    if "spec" in after:
        absent = {name: type(value)() for name, value in before.get("spec", {}).items() if name not in after["spec"]}
        after = {**after, "spec": {**after["spec"], **absent}}
    change = strategic_diff(before, after, merge_schema_of(after["kind"]))
    name = {field: after["metadata"][field] for field in ("name", "namespace") if field in after["metadata"]}
    type_ = {"apiVersion": after["apiVersion"], "kind": after["kind"]}
    return {**type_, **change, "metadata": {**name, **change.get("metadata", {})}}
