"""Pictures of runs: one, or those of a sweep with some of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.api.errors import escape
from podium.api.times import format_duration
from podium.app.console.page import counted
from podium.app.reporting.picture import Picture, Runs, Table, told
from podium.app.reporting.story import story_of
from podium.app.reporting.summary import summary_tables
from podium.app.sweeping.sweep import Played, caveats_of
from podium.app.sweeping.tables import Row, rows_of
from podium.app.sweeping.variations import Combination
from podium.sim.results.result import Result

_LONGEST = 500
_NOT_FIGURES = frozenset(("seed", "error"))


@dataclass(frozen=True, slots=True)
class SweepAnswer:
    """The runs of a sweep, and by the words for their settings the results of some that are to be seen."""

    played: Sequence[Played]
    results: Sequence[tuple[str, Result]]


def picture_of_result(result: Result) -> Picture:
    """A run."""
    summary = result.summary
    waiting = f"{counted(summary['pods']['pending'], 'pod')} waiting at the end"
    done = f"{summary['bindings']:,} bound, {summary['preempted']:,} preempted, {waiting}"
    return Picture(
        command="simulate",
        headline=f"{format_duration(round(summary['end'] * 10**9))}: {done}",
        facts=untold(result),
        stories=[story_of(result, "")],
        more=summary_tables(result),
        rests_on=told(result.rests_on),
    )


def untold(result: Result) -> list[str]:
    """What is to be said of the pods of which it is not told why they are where they are."""
    left_out = result.placements_left_out
    if not left_out:
        return []
    told = f"why pods are where they are is told of the first {counted(len(result.placements), 'placement')}"
    return [f"{told}; of {counted(left_out, 'later attempt')} it was not taken down"]


def picture_of_sweep(answer: SweepAnswer) -> Picture:
    """The figures of all runs, and some of them side by side."""
    played = answer.played
    settings = list(dict.fromkeys(in_words(run.combination) for run in played))
    rows = rows_of(played)
    return Picture(
        command="sweep",
        headline=f"{counted(len(played), 'run')} of {counted(len(settings), 'combination')} of settings",
        tables=[_table(played, rows)],
        runs=_runs(played, rows, settings),
        stories=[story_of(result, name) for name, result in answer.results],
        rests_on=told(caveats_of(played)),
    )


def in_words(combination: Combination) -> str:
    """The settings of a run, in a line."""
    text = ", ".join(f"{name}={value}" for name, value in combination.items())
    return escape(text, _LONGEST) or "as given"


def _table(played: Sequence[Played], rows: Sequence[Row]) -> Table:
    """A row for each run: its settings, its seed, and what differs."""
    names = list(played[0].combination)
    kept = [name for name in rows[0] if name in (*names, "seed") or len({row[name] for row in rows}) > 1]
    return Table(
        "Runs",
        kept,
        [[_cell(row[name]) for name in kept] for row in rows],
        note="what differs between them" if len(rows) > 1 else "",
    )


def _cell(value: str | float | None) -> str | float | None:
    return escape(value, _LONGEST) if isinstance(value, str) else value


def _runs(played: Sequence[Played], rows: Sequence[Row], settings: list[str]) -> Runs:
    varied = set(played[0].combination)
    figures = [
        name
        for name in rows[0]
        if name not in varied | _NOT_FIGURES and any(isinstance(row[name], int | float) for row in rows)
    ]
    differing = [name for name in figures if len({row[name] for row in rows}) > 1]
    return Runs(
        settings,
        differing,
        [settings.index(in_words(run.combination)) for run in played],
        [run.seed for run in played],
        [[_figure(row[name]) for name in differing] for row in rows],
    )


def _figure(value: str | float | None) -> float | None:
    return None if isinstance(value, str) else value
