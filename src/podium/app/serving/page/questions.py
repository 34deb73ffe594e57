"""The answers to the questions of the forms, as `podium plan` and `podium explain` give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from podium.api.errors import InputError, shown
from podium.api.input.codec import Input
from podium.api.times import parse_duration
from podium.app.cluster import Cluster
from podium.app.console.page import Page
from podium.app.explaining.on_node import answer_on, verdict_table
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.inputs import DecisionSettings
from podium.app.planning.answer import PlanAnswer, write_answer
from podium.app.planning.question import PlanRun
from podium.app.planning.questions.change import patch, set_fields
from podium.app.planning.questions.deploy import deploy
from podium.app.planning.questions.diff import diff, read_setting
from podium.app.planning.questions.fit import FitOptions, fit_answer, fit_target
from podium.app.planning.questions.nodes import DrainOptions, change_nodes, drain, fail
from podium.app.planning.questions.pending import pending_answer
from podium.app.planning.questions.reschedule import reschedule
from podium.app.planning.questions.survive import survive_answer
from podium.app.reporting.pictures import picture_of
from podium.app.serving.page.forms import EXPLAIN, FORMS, PLANS, Field, Form
from podium.framework.rescheduling.configuration import default_rescheduler, parse_rescheduler
from podium.sim.run_options import RunOptions

if TYPE_CHECKING:
    from podium.api.input.codec import Document
    from podium.api.meta import Raw

_LARGEST = 1_000_000
_TRUE_OR_FALSE = (True, False, "", None)


class Values:
    """The values of a form; empty fields have none."""

    def __init__(self, form: Form, given: Any) -> None:
        """Check the values. Raises InputError for unknown fields, wrong types and missing fields."""
        if not isinstance(given, Mapping):
            raise InputError("the values of a form are an object", path=".values")
        self._form = form
        fields = {field.name: field for field in (*form.fields, *form.rest)}
        for name, value in given.items():
            if name not in fields:
                raise InputError(f"{form.name} has no field {shown(name)}; it has {', '.join(fields)}", path=".values")
            _check(fields[name], value)
        self._given = {name: value for name, value in given.items() if value not in ("", None, False)}
        for field in fields.values():
            if field.is_required and field.name not in self._given:
                raise InputError(f"{form.name} needs to know: {field.title}", path=f".values.{field.name}")

    def text(self, name: str) -> str:
        """Return a line, without spaces around it."""
        return str(self._given.get(name, "")).strip()

    def names(self, name: str) -> list[str]:
        """Return names that are separated by spaces, commas or lines."""
        return self.text(name).replace(",", " ").split()

    def lines(self, name: str) -> list[str]:
        return [line.strip() for line in self.text(name).splitlines() if line.strip()]

    def flag(self, name: str) -> bool:
        return bool(self._given.get(name))

    def whole(self, name: str, least: int = 0) -> int | None:
        """Return a number, None for none. Raises InputError."""
        text = self.text(name)
        if not text:
            return None
        if not text.isascii() or not text.isdecimal() or not least <= int(text[:20]) <= _LARGEST:
            raise self._wrong(name, f"{shown(text)} is no number from {least} to {_LARGEST:,}")
        return int(text)

    def duration_ns(self, name: str) -> int | None:
        """Return a duration in nanoseconds, None for none. Raises InputError."""
        text = self.text(name)
        if not text:
            return None
        try:
            found = parse_duration(text)
        except ValueError as error:
            raise self._wrong(name, str(error)) from None
        if found < 0:
            raise self._wrong(name, f"{shown(text)} is negative; write 0s or more")
        return found

    def documents(self, name: str) -> list[Document]:
        """Return the objects in YAML or JSON. Raises InputError."""
        from podium.api.input.codec import load_text

        text = self.text(name)
        return load_text(text, self._title(name)) if text else []

    def parts(self, name: str) -> list[Raw]:
        """Return the documents in YAML or JSON that are no whole objects, such as patches. Raises InputError."""
        from podium.api.input import yaml

        found = []
        for index, document in yaml.parse_documents(self.text(name)) if self.text(name) else ():
            if not isinstance(document, dict):
                raise InputError("is not an object", source=self._title(name), document=index)
            found.append(document)
        return found

    def _title(self, name: str) -> str:
        return next(field.title for field in (*self._form.fields, *self._form.rest) if field.name == name)

    def _wrong(self, name: str, problem: str) -> InputError:
        return InputError(f"{self._title(name)}: {problem}", path=f".values.{name}")


def _check(field: Field, value: Any) -> None:
    if field.kind == "flag":
        if value not in _TRUE_OR_FALSE or isinstance(value, int) is not isinstance(value, bool):
            raise InputError(f"{field.title}: is neither true nor false", path=f".values.{field.name}")
    elif not isinstance(value, str) and value is not None:
        raise InputError(f"{field.title}: is no text", path=f".values.{field.name}")
    elif field.kind == "choice" and value and value not in field.choices:
        raise InputError(
            f"{field.title}: {shown(value)} is none of {', '.join(field.choices)}", path=f".values.{field.name}"
        )


Progress = Callable[[float, str], None]
"""Receives the share that is done, and what is being done."""

_DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class Query:
    """A question: its cluster, the values of its form, and the options of simulations."""

    read: Input
    values: Values
    options: RunOptions
    progress: Progress

    @property
    def loaded(self) -> Cluster:
        """Return the cluster, for questions without a simulation."""
        options = self.options
        settings = DecisionSettings(options.configuration, options.release, options.ignore_extenders)
        return Cluster(self.read, settings)

    @property
    def run(self) -> PlanRun:
        """Return the cluster and the options, for questions with a simulation."""
        until_ns = self.values.duration_ns("until")
        start_delay_ns = self.values.duration_ns("startDelay")
        options = replace(
            self.options,
            until_ns=until_ns,
            records_placements=True,
            start_delay_ns=self.options.start_delay_ns if start_delay_ns is None else start_delay_ns,
        )
        return PlanRun(self.read, options, self.progress)


def answered(read: Input, name: str, given: Any, options: RunOptions, progress: Progress) -> dict[str, Any]:
    """Return the picture of the answer to a question, and the scenario that was played. Raises PodiumError."""
    form = FORMS.get(name)
    if form is None:
        raise InputError(f"there is no such question; there are {', '.join(FORMS)}", path=".question")
    values = Values(form, given)
    query = Query(read, values, options, progress)
    if form is EXPLAIN:
        return _explained(query)
    answer = _ANSWERS[name](query)
    page = Page()
    write_answer(page, answer)
    picture = msgspec.structs.replace(picture_of(answer), text=page.text)
    # To show an answer that was not played, the scenario needs the cluster: the command saves both.
    scenario = None if answer.result is None else answer.scenario
    return {"picture": msgspec.to_builtins(picture), "scenario": scenario}


def _explained(query: Query) -> dict[str, Any]:
    """Return the picture of the decision, and every plugin's verdict on every node."""
    values = query.values
    target, node = values.text("target"), values.text("node")
    answer = query.loaded.ask(target, values.text("namespace") or _DEFAULT_NAMESPACE, values.text("scheduler"))
    explanation = answer.explanation if isinstance(answer, WorkloadExplanation) else answer
    picture = picture_of(answer_on(explanation, node) if node else answer)
    return {"picture": msgspec.to_builtins(picture), "table": verdict_table(explanation)}


def _drain(query: Query) -> PlanAnswer:
    values = query.values
    options = DrainOptions(
        parallel=values.flag("parallel"),
        timeout_ns=values.duration_ns("timeout"),
        grace_seconds=values.whole("gracePeriod"),
        force=values.flag("force"),
        delete_emptydir_data=values.flag("deleteEmptydirData"),
        disable_eviction=values.flag("disableEviction"),
    )
    return drain(query.run, values.names("nodes"), values.text("selector"), options)


def _fail(query: Query) -> PlanAnswer:
    values = query.values
    return fail(query.run, values.names("nodes"), values.text("selector"), values.duration_ns("for"))


def _nodes(query: Query) -> PlanAnswer:
    values = query.values
    like, remove, selector = values.text("like"), values.names("remove"), values.text("selector")
    number = values.whole("add", least=1) or int(bool(like))
    documents = values.documents("objects")
    return change_nodes(query.run, documents, add=number, like=like, remove=remove, selector=selector)


def _set(query: Query) -> PlanAnswer:
    values = query.values
    return set_fields(query.run, values.text("target"), values.lines("assignments"), values.text("namespace"))


def _reschedule(query: Query) -> PlanAnswer:
    given = query.values.text("rescheduler")
    return reschedule(query.run, parse_rescheduler(given, "the configuration") if given else default_rescheduler())


def _pending(query: Query) -> PlanAnswer:
    return pending_answer(query.loaded, query.values.text("namespace"), query.progress)


def _fit(query: Query) -> PlanAnswer:
    values = query.values
    asked, others = fit_target(values.documents("objects"))
    options = FitOptions(values.whole("replicas", least=1), values.flag("preempt"), values.flag("afterPending"))
    return fit_answer(query.loaded.with_(*others), asked, options)


def _survive(query: Query) -> PlanAnswer:
    values = query.values
    return survive_answer(query.loaded, values.text("target"), values.text("namespace") or _DEFAULT_NAMESPACE)


def _diff(query: Query) -> PlanAnswer:
    values = query.values
    settings = (read_setting(name, values.documents(name)) for name in ("before", "after"))
    return diff(query.run, *settings, renews_priorities=values.flag("renewPriorities"))


_ANSWERS: Mapping[str, Callable[[Query], PlanAnswer]] = {
    "deploy": lambda query: deploy(query.run, query.values.documents("objects")),
    "drain": _drain,
    "fail": _fail,
    "nodes": _nodes,
    "set": _set,
    "patch": lambda query: patch(query.run, query.values.parts("patches")),
    "pending": _pending,
    "fit": _fit,
    "survive": _survive,
    "diff": _diff,
    "reschedule": _reschedule,
}

if set(_ANSWERS) != {form.name for form in PLANS}:
    raise AssertionError("every form has an answer, and every answer a form")
