"""The answers to the questions of the forms, as `podium plan` and `podium explain` give them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click
import msgspec

from podium.api.errors import InputError
from podium.api.input.codec import Document, Input, load_text, objects_in
from podium.api.meta import Raw
from podium.app.cluster import Cluster
from podium.app.console.page import Page
from podium.app.explaining.command import explain
from podium.app.explaining.on_node import answer_on, verdict_table
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.inputs import DecisionSettings
from podium.app.planning.answer import PlanAnswer, PlanProgress, write_answer
from podium.app.planning.command import plan
from podium.app.planning.question import PlanRun
from podium.app.planning.questions.diff import UNCHANGED, Setting, read_setting
from podium.app.reporting.pictures import picture_of
from podium.app.serving.page.evaluated import evaluated
from podium.app.serving.page.forms import EXPLAIN, FORMS
from podium.app.serving.page.now import NOW
from podium.framework.rescheduling.configuration import (
    ReschedulerConfiguration,
    default_rescheduler,
    parse_rescheduler,
)
from podium.sim.run_options import RunOptions

_MANIFESTS = "the manifests"


@dataclass(slots=True)
class PageInputs:
    """The inputs of a command of `podium plan` on the page: a cluster, and texts in place of files.

    It has the methods of `podium.app.planning.options.PlanInputs` that commands call; ``found`` is the answer.
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

    def load(self, *, separately: bool = False) -> Cluster:
        """Return the cluster, for questions that are decided."""
        options = self.options
        return Cluster(self.read, DecisionSettings(options.configuration, options.release, options.ignore_extenders))

    def show(self, doing: str, ask: Callable[[PlanProgress], PlanAnswer]) -> None:
        """Answer a question that is decided."""
        self.found = ask(self.progress)

    def answer(
        self,
        question: Callable[..., PlanAnswer],
        *arguments: Any,
        separately: bool = False,
        doing: str = "",
        **options: Any,
    ) -> None:
        """Answer a question that is played."""
        self.found = question(PlanRun(self.read, self.options, self.progress), *arguments, **options)


def answered(
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
    return {"picture": msgspec.to_builtins(picture), "scenario": scenario}


def _explained(inputs: PageInputs, *, target: str, namespace: str, node: str | None, scheduler: str) -> dict[str, Any]:
    """Return the picture of the decision, and every plugin's verdict on every node."""
    answer = inputs.load().ask(target, namespace, scheduler)
    explanation = answer.explanation if isinstance(answer, WorkloadExplanation) else answer
    picture = picture_of(answer_on(explanation, node) if node else answer)
    return {"picture": msgspec.to_builtins(picture), "table": verdict_table(explanation)}
