"""The answers to the questions of the forms, as `podium plan` and `podium explain` give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from podium.api.errors import InputError
from podium.api.input.codec import Input
from podium.app.console.page import Page
from podium.app.explaining.on_node import answer_on
from podium.app.explaining.verdict_table import verdict_table
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.loaded import LoadedCluster
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.nodes import chosen_nodes
from podium.app.planning.question import Played, Question, play_question
from podium.app.planning.questions.change import change_answer, change_question, changes_patched, changes_set
from podium.app.planning.questions.deploy import deploy_answer, deploy_question, deployed
from podium.app.planning.questions.drain import DrainWishes, drain_answer, drain_question
from podium.app.planning.questions.fail import fail_answer, fail_question
from podium.app.planning.questions.nodes import NodeChange, nodes_answer, nodes_from, nodes_like, nodes_question
from podium.app.planning.questions.reschedule import reschedule_answer, reschedule_question
from podium.app.planning.text import write_answer
from podium.app.reporting.pictures import picture_of
from podium.app.rescheduling.offline import Question as Wish
from podium.app.rescheduling.offline import plan_once
from podium.app.serving.page.forms import EXPLAIN, FORMS, PLANS
from podium.app.serving.page.values import Values
from podium.framework.rescheduling.configuration import default_rescheduler, parse_rescheduler
from podium.framework.settings.configuration import default_configuration
from podium.sim.run import RunOptions

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

    def play(self, question: Question) -> Played:
        """Play the question and what would happen anyway."""
        until_ns = self.values.duration_ns("until")
        start_delay_ns = self.values.duration_ns("startDelay")
        options = replace(
            self.options,
            until_ns=until_ns,
            start_delay_ns=self.options.start_delay_ns if start_delay_ns is None else start_delay_ns,
        )
        return play_question(self.read, question, options, self.progress)


def answered(read: Input, name: str, given: Any, options: RunOptions, progress: Progress) -> dict[str, Any]:
    """The answer to a question, as the page shows it: its picture, and what is told beside that. Raises PodiumError."""
    form = FORMS.get(name)
    if form is None:
        raise InputError(f"there is no such question; there are {', '.join(FORMS)}", path=".question")
    values = Values(form, given)
    if form is EXPLAIN:
        return _explained(read, values, options)
    answer = _ANSWERS[name](Asking(read, values, options, progress))
    page = Page()
    write_answer(page, answer)
    picture = msgspec.structs.replace(picture_of(answer), text=page.text)
    return {"picture": msgspec.to_builtins(picture), "scenario": answer.scenario}


def _explained(read: Input, values: Values, options: RunOptions) -> dict[str, Any]:
    """The decision, and what it rests on plugin by plugin."""
    loaded = LoadedCluster(
        read, options.configuration, options.feature_gates, ignore_extenders=options.ignore_extenders
    )
    target, node = values.text("target"), values.text("node")
    answer = loaded.ask(target, values.text("namespace") or _DEFAULT_NAMESPACE, values.text("scheduler"))
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
    return drain_answer(asking.play(drain_question(chosen, wishes)), chosen)


def _fail(asking: Asking) -> PlanAnswer:
    chosen = _chosen(asking, "nodes")
    return fail_answer(asking.play(fail_question(chosen, asking.values.duration_ns("for"))), chosen)


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
    options = asking.options
    given = asking.values.text("rescheduler")
    rescheduling = parse_rescheduler(given, "the configuration") if given else default_rescheduler()
    configuration = options.configuration or default_configuration()
    report = plan_once(asking.read, Wish(rescheduling, configuration, ignores_extenders=options.ignore_extenders))
    return reschedule_answer(report, asking.play(reschedule_question(report)) if report.moves else None)


def _chosen(asking: Asking, field: str) -> list[str]:
    return chosen_nodes(asking.read, asking.values.names(field), asking.values.text("selector"))


_ANSWERS: Mapping[str, Callable[[Asking], PlanAnswer]] = {
    "deploy": _deploy,
    "drain": _drain,
    "fail": _fail,
    "nodes": _nodes,
    "set": _set,
    "patch": _patch,
    "reschedule": _reschedule,
}

if set(_ANSWERS) != {form.name for form in PLANS}:
    raise AssertionError("every form has an answer, and every answer a form")
