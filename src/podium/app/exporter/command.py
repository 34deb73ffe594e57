"""`podium exporter`."""

from __future__ import annotations

from typing import Any

import click

from podium.app.console.command import Command
from podium.app.console.options import config_option, release_options
from podium.app.live.options import ProgramOptions, program_options

_EPILOG = """
\b
Examples: for the cluster of the current context; with headroom for the pods in a file
  podium exporter --port 10270
  podium exporter --port 10270 --shapes shapes.yaml --interval 60

Exit codes: 0 after SIGINT or SIGTERM.
"""


@click.command(cls=Command, epilog=_EPILOG)
@config_option
@release_options
@click.option("--interval", type=click.IntRange(1), default=30, show_default=True, help="Seconds between evaluations.")
@click.option("--processes", type=click.IntRange(1, 16), default=2, show_default=True, help="Processes that evaluate.")
@click.option("--shapes", metavar="FILE", default="", help="Pods; the exporter counts how many more like each fit.")
@click.option("--zone-label", "zone_labels", multiple=True, help="A node label of zones; the first one counts.")
@click.option("--pool-label", "pool_labels", multiple=True, help="A node label of node pools; the first one counts.")
@click.option("--rack-label", "rack_labels", multiple=True, help="A node label of racks; the first one counts.")
@program_options()
def exporter(*, config: str | None, program: ProgramOptions, shapes: str, **given: Any) -> None:
    """Serve metrics and a report on which failures a cluster can take.

    For each node, zone, node pool and rack: if it fails now, does every pod find a place, and which workload breaks
    first? Further: headroom, fragmentation, pending pods by cause, and budgets in the way of drains. It only reads.
    """
    from podium.app.exporter.evaluation import EvaluationSettings, read_shapes
    from podium.app.exporter.exporter import ExporterSettings, LiveExporter
    from podium.framework.settings.configuration import default_configuration, load_configuration

    configuration = load_configuration(config) if config else default_configuration()
    labels = {name: given[name] for name in ("zone_labels", "pool_labels", "rack_labels") if given[name]}
    settings = ExporterSettings(
        configuration=configuration,
        release=given["release"],
        evaluation=EvaluationSettings(**labels, shapes=read_shapes(shapes) if shapes else ()),
        interval_s=given["interval"],
        processes=given["processes"],
        dry_run=True,
        **program.of_program(configuration, "", elects=False),
    )
    program.run(LiveExporter, settings, configuration)
