"""Printing an answer in the form that is asked for, and keeping the scenario behind it."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from pathlib import Path

import click

from podium.api.times import format_duration, format_exact_time
from podium.app.console.output import in_yaml, new_page, show, show_page
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.question import Played, with_scenario
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


def save_scenario(file: str, played: Played, options: RunOptions) -> None:
    """Write the cluster and the scenario that was played, as `podium simulate -f FILE` plays them.

    What is an option there, such as the seed, stands in a comment at the beginning.
    """
    scenario = with_scenario(played.read, played.scenario)
    with Path(file).open("w", encoding="utf-8") as stream:
        stream.write(f"# podium simulate -f {Path(file).name}{_told(options)}\n")
        for document in scenario.documents:
            stream.write(f"---\n{in_yaml(document.raw)}")


def _told(options: RunOptions) -> str:
    """The options of `podium simulate` that say the same."""
    durations = {
        "until": options.until_ns,
        "start-delay": options.start_delay_ns or None,
        "bind-delay": options.bind_delay_ns or None,
        "termination": options.termination_ns,
    }
    told = [f" --{name} {format_duration(lasts)}" for name, lasts in durations.items() if lasts is not None]
    if options.seed:
        told.append(f" --seed {options.seed}")
    if options.start_ns is not None:
        told.append(f" --start {format_exact_time(options.start_ns)}")
    if options.configuration is not None:
        told.append(f" --config {options.configuration.source}")
    return "".join(told)


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
