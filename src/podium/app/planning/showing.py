"""Printing an answer in the form that is asked for, and keeping the scenario behind it."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from pathlib import Path

import click

from podium.api.errors import PodiumError
from podium.app.console.output import in_yaml, new_page, show, show_page
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.text import write_answer
from podium.sim.run import RunOptions

_COLUMNS = (
    "workload",
    "readyBefore",
    "lowestReady",
    "readyAfter",
    "readyWithoutPlan",
    "wanted",
    "missing",
    "pending",
    "shortSeconds",
    "pendingSeconds",
    "disruptions",
    "why",
)
# What a spreadsheet would take for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def show_answer(answer: PlanAnswer, form: str, shown: Collection[str] = ()) -> None:
    """Print the answer as text, json, yaml, csv (the impact by workload) or html."""
    if form in ("json", "yaml"):
        show(answer.to_dict(), form)
    elif form == "csv":
        click.echo(in_csv(answer), nl=False)
    elif form == "html":
        click.echo(_in_html(answer), nl=False)
    else:
        page = new_page()
        write_answer(page, answer, shown)
        show_page(page)


def in_csv(answer: PlanAnswer) -> str:
    """The impact by workload, a row each; text that a spreadsheet would take for a formula gets a quote before it."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for impact in answer.impact:
        row = impact.to_dict()
        row["disruptions"] = "; ".join(f"{cause}: {number}" for cause, number in impact.disruptions.items())
        writer.writerow([_harmless(row[column]) for column in _COLUMNS])
    return stream.getvalue()


def save_scenario(file: str, answer: PlanAnswer, options: RunOptions) -> None:
    """Write the scenario that was played. Raises PodiumError where the question plays none."""
    if answer.scenario is None:
        raise PodiumError(f"--save {file}: {answer.question} plays no scenario")
    Path(file).write_text(in_yaml(answer.scenario), encoding="utf-8")


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _in_html(answer: PlanAnswer) -> str:
    from importlib import import_module

    try:
        report = import_module("podium.app.reporting").report
    except (ImportError, AttributeError):
        raise PodiumError("-o html: pictures are not part of this installation") from None
    return str(report(answer))
