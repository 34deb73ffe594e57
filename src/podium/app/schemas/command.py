"""`podium schema`."""

from __future__ import annotations

import click

from podium.app.console.command import Command

_EPILOG = """
\b
Example: let an editor complete scenarios, which then begin with # yaml-language-server: $schema=./scenario.schema.json
  podium schema scenario > scenario.schema.json
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("name", type=click.Choice(["explain", "simulate", "plan", "scenario"]))
def schema(*, name: str) -> None:
    """Print a JSON Schema.

    Those of explain, simulate and plan are of their answers with -o json; that of scenario is of what people write.
    """
    from podium.app.console.output import show
    from podium.app.schemas.schemas import schema_named

    show(schema_named(name), "json")
