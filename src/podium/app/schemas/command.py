"""`podium schema`."""

from __future__ import annotations

import click

from podium.app.console.command import Command

_EPILOG = """
\b
Example: let an editor complete scenarios that begin with # yaml-language-server: $schema=./scenario.schema.json
  podium schema scenario > scenario.schema.json
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("name", type=click.Choice(["explain", "simulate", "plan", "reschedule", "scenario"]))
def schema(*, name: str) -> None:
    """Print a JSON Schema.

    explain, simulate, plan and reschedule are the schemas of their answers with -o json, scenario is that of Scenario
    files.
    """
    from podium.app.console.output import show
    from podium.app.schemas.schemas import SCHEMAS

    show(SCHEMAS[name](), "json")
