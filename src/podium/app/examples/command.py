"""`podium examples`."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from podium.api.errors import InputError
from podium.app.console.command import Command

_NAME = "examples"
_PACKAGE = Path(__file__).resolve().parents[2]
_LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*")


_EPILOG = """
\b
Example: what happens if a service is deployed to one of the clusters of the cookbook
  podium examples
  podium plan deploy examples/cookbook/deploy-checkout.yaml -f examples/cookbook/deploy.yaml
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("folder", type=click.Path(path_type=Path), default=Path("examples"))
def examples(*, folder: Path) -> None:
    """Write the examples of the documents into FOLDER.

    They are clusters, scenarios, configurations and plugins to try things on. Without FOLDER they come into the folder
    examples here, so that commands of the documents work as they stand.
    """
    # In the installed package, or in the sources.
    folders = (_PACKAGE / _NAME, _PACKAGE.parents[1] / _NAME)
    source = next((each for each in folders if (each / "cookbook").is_dir()), None)
    if source is None:
        raise InputError("this copy of Podium has no examples; they are in its source archive")
    if folder.exists():
        raise InputError(f"{folder} already exists; name another folder, or remove it")
    shutil.copytree(source, folder, ignore=_LEFT_OUT)
    number = sum(path.is_file() for path in folder.rglob("*"))
    click.echo(f"{number} files in {folder}; the clusters of the cookbook are in {folder / 'cookbook'}")
