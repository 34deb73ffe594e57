"""Printing an answer as a picture."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from podium.app.reporting.report import report

if TYPE_CHECKING:
    from podium.app.reporting.report import Answer


def show_report(answer: Answer) -> None:
    """Print the answer as an HTML file. Raises UsageError where nobody but a terminal would read it."""
    if sys.stdout.isatty():
        raise click.UsageError("-o html is for a browser, not for a terminal; put > answer.html behind the command")
    click.echo(report(answer), nl=False)
