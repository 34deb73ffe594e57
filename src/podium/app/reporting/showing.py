"""Printing an answer as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podium.app.reporting.pictures import report

if TYPE_CHECKING:
    from podium.app.reporting.pictures import Answer


def show_report(answer: Answer) -> None:
    """Print the answer as an HTML file."""
    click.echo(report(answer), nl=False)
