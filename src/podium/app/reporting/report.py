"""`-o html`: which picture an answer is."""

from __future__ import annotations

from podium.api.times import format_duration
from podium.app.console.page import counted
from podium.app.reporting.file import html_file
from podium.app.reporting.picture import Picture, told
from podium.app.reporting.story import story_of
from podium.sim.results.result import Result

Answer = Result
"""What there are pictures of."""


def report(answer: Answer) -> str:
    """The answer as an HTML file that needs nothing else."""
    picture = picture_of_result(answer)
    return html_file(picture.headline, picture)


def picture_of_result(result: Result) -> Picture:
    """A run."""
    summary = result.summary
    waiting = f"{counted(summary['pods']['pending'], 'pod')} waiting at the end"
    done = f"{summary['bindings']:,} bound, {summary['preempted']:,} preempted, {waiting}"
    return Picture(
        command="simulate",
        headline=f"{format_duration(round(summary['end'] * 10**9))}: {done}",
        stories=[story_of(result, "")],
        rests_on=told(result.rests_on),
    )
