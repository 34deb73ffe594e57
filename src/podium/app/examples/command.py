"""`podium examples`."""

from __future__ import annotations

from pathlib import Path

import click

from podium.app.console.command import Command

_EPILOG = """
\b
Example: what happens if a service is deployed to one of the clusters of the cookbook
  podium examples
  podium plan -f examples/cookbook/deploy.yaml deploy -f examples/cookbook/deploy-checkout.yaml
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("folder", type=click.Path(path_type=Path), default=Path("examples"))
def examples(*, folder: Path) -> None:
    """Write the examples of the documents into FOLDER.

    They are clusters, scenarios, configurations and plugins to try things on. Without FOLDER they come into the folder
    examples here, so that commands of the documents work as they stand.
    """
    from podium.app.examples.copying import copy_examples

    number = copy_examples(folder)
    click.echo(f"{number} files in {folder}; the clusters of the cookbook are in {folder / 'cookbook'}")
