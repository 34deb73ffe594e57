"""The answers to the questions of the forms, as `podium plan` and `podium explain` give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from podium.api.errors import InputError
from podium.api.input.codec import Input
from podium.app.cluster import Cluster
from podium.app.console.page import Page
from podium.app.decision_settings import DecisionSettings
from podium.app.explaining.on_node import answer_on
from podium.app.explaining.verdict_table import verdict_table
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.nodes import chosen_nodes
from podium.app.planning.question import Played, Question, play_question
from podium.app.planning.questions.change import change_answer, change_question, changes_patched, changes_set
from podium.app.planning.questions.deploy import deploy_answer, deploy_question, deployed
from podium.app.planning.questions.diff import diff_answer, play_diff
from podium.app.planning.questions.drain import DrainWishes, drain_answer, drain_question
from podium.app.planning.questions.fail import fail_answer, fail_question
from podium.app.planning.questions.fit import asked_for, fit_answer
from podium.app.planning.questions.fit_scenario import FitWishes
from podium.app.planning.questions.nodes import NodeChange, nodes_answer, nodes_from, nodes_like, nodes_question
from podium.app.planning.questions.pending import pending_answer
from podium.app.planning.questions.reschedule import report_of, reschedule_answer, reschedule_question
from podium.app.planning.questions.survive import survive_answer
from podium.app.planning.settings import read_setting
from podium.app.planning.text import write_answer
from podium.app.reporting.pictures import picture_of
from podium.app.serving.page.forms import EXPLAIN, FORMS, PLANS
from podium.app.serving.page.values import Values
from podium.framework.rescheduling.configuration import default_rescheduler, parse_rescheduler
from podium.sim.run_options import RunOptions

Progress = Callable[[float, str], None]
"""Is told the share that is done, and of what."""

_DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class Asking:
    """A question's cluster, what was written into its form, and how it is played."""

    read: Input
    values: Values
    options: RunOptions
    progress: Progress

    @property
    def loaded(self) -> Cluster:
        """The cluster, for questions that decide and play nothing."""
        options = self.options
        settings = DecisionSettings(options.configuration, options.feature_gates, options.ignore_extenders)
        return Cluster(self.read, settings)

    @property
    def played_by(self) -> RunOptions:
        """How it is played."""
        until_ns = self.values.duration_ns("until")
        start_delay_ns = self.values.duration_ns("startDelay")
        return replace(
            self.options,
            until_ns=until_ns,
            tells_placements=True,
            start_delay_ns=self.options.start_delay_ns if start_delay_ns is None else start_delay_ns,
        )

    def play(self, question: Question) -> Played:
        """Play the question and what would happen anyway."""
        return play_question(self.read, question, self.played_by, self.progress)


def answered(read: Input, name: str, given: Any, options: RunOptions, progress: Progress) -> dict[str, Any]:
    """The answer to a question, as the page shows it: its picture, and what is told beside that. Raises PodiumError."""
    form = FORMS.get(name)
    if form is None:
        raise InputError(f"there is no such question; there are {', '.join(FORMS)}", path=".question")
    values = Values(form, given)
    asking = Asking(read, values, options, progress)
    if form is EXPLAIN:
        return _explained(asking)
    answer = _ANSWERS[name](asking)
    page = Page()
    write_answer(page, answer)
    picture = msgspec.structs.replace(picture_of(answer), text=page.text)
    # What shows an answer that was not played needs the cluster beside it: the command keeps both.
    scenario = None if answer.result is None else answer.scenario
    return {"picture": msgspec.to_builtins(picture), "scenario": scenario}


def _explained(asking: Asking) -> dict[str, Any]:
    """The decision, and what it rests on plugin by plugin."""
    values = asking.values
    target, node = values.text("target"), values.text("node")
    answer = asking.loaded.ask(target, values.text("namespace") or _DEFAULT_NAMESPACE, values.text("scheduler"))
    explanation = answer.explanation if isinstance(answer, WorkloadExplanation) else answer
    picture = picture_of(answer_on(explanation, node) if node else answer)
    return {"picture": msgspec.to_builtins(picture), "table": verdict_table(explanation).to_dict()}


def _deploy(asking: Asking) -> PlanAnswer:
    objects = asking.values.documents("objects")
    return deploy_answer(asking.play(deploy_question(objects)), deployed(objects))


def _drain(asking: Asking) -> PlanAnswer:
    values = asking.values
    wishes = DrainWishes(
        parallel=values.flag("parallel"),
        timeout_ns=values.duration_ns("timeout"),
        grace_seconds=values.whole("gracePeriod"),
        force=values.flag("force"),
        delete_empty_dir_data=values.flag("deleteEmptydirData"),
        disable_eviction=values.flag("disableEviction"),
    )
    chosen = _chosen(asking, "nodes")
    return drain_answer(asking.play(drain_question(chosen, wishes)), chosen, _labels_of(values))


def _fail(asking: Asking) -> PlanAnswer:
    chosen = _chosen(asking, "nodes")
    question = fail_question(chosen, asking.values.duration_ns("for"))
    return fail_answer(asking.play(question), chosen, _labels_of(asking.values))


def _nodes(asking: Asking) -> PlanAnswer:
    read, values = asking.read, asking.values
    number = values.whole("add", least=1)
    like = values.text("like")
    added = nodes_like(read, chosen_nodes(read, [like])[0], number or 1) if like else []
    added += nodes_from(read, values.documents("objects"), number or 1)
    if number is not None and not added:
        raise InputError("say which nodes are added: like one of the cluster, or by their YAML", path=".values.add")
    leaves = bool(values.names("remove") or values.text("selector"))
    change = NodeChange(tuple(added), tuple(_chosen(asking, "remove") if leaves else ()))
    return nodes_answer(asking.play(nodes_question(change)), change)


def _set(asking: Asking) -> PlanAnswer:
    values = asking.values
    changes = changes_set(asking.read, values.text("target"), values.lines("assignments"), values.text("namespace"))
    return change_answer(asking.play(change_question("set", changes)), changes)


def _patch(asking: Asking) -> PlanAnswer:
    changes = changes_patched(asking.read, asking.values.parts("patches"))
    return change_answer(asking.play(change_question("patch", changes)), changes)


def _reschedule(asking: Asking) -> PlanAnswer:
    given = asking.values.text("rescheduler")
    rescheduling = parse_rescheduler(given, "the configuration") if given else default_rescheduler()
    report = report_of(asking.read, rescheduling, asking.options)
    return reschedule_answer(report, asking.play(reschedule_question(report)) if report.moves else None)


def _pending(asking: Asking) -> PlanAnswer:
    return pending_answer(
        asking.loaded, asking.values.text("namespace"), lambda share: asking.progress(share, "trying changes")
    )


def _fit(asking: Asking) -> PlanAnswer:
    values = asking.values
    asked, others = asked_for(values.documents("objects"))
    loaded = asking.loaded.with_(*others)
    replicas = values.whole("replicas", least=1)
    return fit_answer(loaded, asked, FitWishes(replicas, values.flag("preempt"), values.flag("afterPending")))


def _survive(asking: Asking) -> PlanAnswer:
    values = asking.values
    return survive_answer(asking.loaded, values.text("target"), values.text("namespace") or _DEFAULT_NAMESPACE)


def _diff(asking: Asking) -> PlanAnswer:
    values = asking.values
    before = read_setting("before", values.documents("before"))
    after = read_setting("after", values.documents("after"))
    renews = values.flag("renewPriorities")
    played = play_diff(asking.read, before, after, asking.played_by, renews_priorities=renews, progress=asking.progress)
    return diff_answer(played, before, after)


def _labels_of(values: Values) -> str:
    """The labels by which all nodes are chosen."""
    return "" if values.names("nodes") else values.text("selector")


def _chosen(asking: Asking, field: str) -> list[str]:
    return chosen_nodes(asking.read, asking.values.names(field), asking.values.text("selector"))


_ANSWERS: Mapping[str, Callable[[Asking], PlanAnswer]] = {
    "deploy": _deploy,
    "drain": _drain,
    "fail": _fail,
    "nodes": _nodes,
    "set": _set,
    "patch": _patch,
    "pending": _pending,
    "fit": _fit,
    "survive": _survive,
    "diff": _diff,
    "reschedule": _reschedule,
}

if set(_ANSWERS) != {form.name for form in PLANS}:
    raise AssertionError("every form has an answer, and every answer a form")
