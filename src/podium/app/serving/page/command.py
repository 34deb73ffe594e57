"""`podium ui`."""

from __future__ import annotations

import click

from podium.api.versions.choice import ReleaseChoice
from podium.app.console.command import Command
from podium.app.console.options import config_option, release_options
from podium.app.live.options import ProgramOptions, program_options

_EPILOG = """
\b
Examples: the cluster of the current context; of another one, in the default browser
  podium ui
  podium ui --context production --open

Exit codes: 0 after SIGINT or SIGTERM.
"""


@click.command(cls=Command, epilog=_EPILOG)
@config_option
@release_options
@click.option("--open", "opens", is_flag=True, help="Show it in the default browser.")
@program_options()
def ui(*, config: str | None, program: ProgramOptions, release: ReleaseChoice, opens: bool) -> None:
    """Show a cluster in a browser: what is wrong now, its nodes and pods, and the questions of explain and plan.

    It follows the cluster by watches, with your rights and on this machine alone, and only reads.
    """
    from dataclasses import replace

    from podium.app.serving.page.live_ui import LiveUI, UISettings
    from podium.framework.settings.configuration import default_configuration, load_configuration

    configuration = load_configuration(config) if config else default_configuration()
    fields = program.of_program(configuration, "", elects=False)
    health = replace(fields.pop("health"), has_page=True)
    health = health if health.port is not None else replace(health, port=0)
    settings = UISettings(
        configuration=configuration, release=release, opens=opens, dry_run=True, health=health, **fields
    )
    program.run(LiveUI, settings, configuration)
