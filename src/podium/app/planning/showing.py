"""Printing an answer in the form that is asked for, and keeping the scenario behind it."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection

import click

from podium.app.console.output import new_page, show, show_page
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.text import write_answer

_COLUMNS = (
    "workload",
    "readyBefore",
    "lowestReady",
    "readyAfter",
    "readyWithoutPlan",
    "wanted",
    "missing",
    "pending",
    "stuck",
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
        # Which answers there are pictures of is known there, and not here.
        from podium.app.reporting.showing import show_report

        show_report(answer)
    else:
        page = new_page()
        write_answer(page, answer, shown)
        show_page(page)


def in_csv(answer: PlanAnswer) -> str:
    """The impact by workload, a row each, or the answer's own table.

    Text that a spreadsheet would take for a formula gets a quote before it.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    if answer.table is not None:
        writer.writerow(answer.table.headings)
        writer.writerows([_harmless(value) for value in row] for row in answer.table.rows)
        return stream.getvalue()
    writer.writerow(_COLUMNS)
    for impact in answer.impact:
        row = impact.to_dict()
        row["disruptions"] = "; ".join(f"{cause}: {number}" for cause, number in impact.disruptions.items())
        writer.writerow([_harmless(row[column]) for column in _COLUMNS])
    return stream.getvalue()


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
