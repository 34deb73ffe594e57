"""`podium record`."""

from __future__ import annotations

import click

from podium.app.console.command import Command
from podium.app.console.options import ClusterSource, Duration, cluster_options

_MEBIBYTE = 1 << 20
_SHORTEST_NS = 10**9
_EPILOG = """
\b
Example: record for an hour, and replay it with another configuration
  podium record --context prod --for 1h --save hour.podium
  podium simulate -f hour.podium --config scheduler.yaml
"""


@click.command(cls=Command, epilog=_EPILOG)
@cluster_options
@click.option(
    "--save",
    "target",
    metavar="FILE",
    required=True,
    help="The file to write; with --every, the folder.",
)
@click.option("--for", "length", type=Duration(), help="How long to record; default: until interrupted.")
@click.option(
    "--max-size",
    type=click.IntRange(1, 1000),
    default=500,
    show_default=True,
    metavar="MIB",
    help="End before the file exceeds this size, uncompressed; with --every, begin the next one.",
)
@click.option("--every", type=Duration(), help="Begin another file after this time, in a folder.")
def record(*, cluster: ClusterSource, target: str, length: int | None, max_size: int, every: int | None) -> None:
    """Record the changes of a cluster in a file.

    Rights to list and watch are enough. The file has the objects at the start, a Scenario with the later requests of
    users, and the reactions of the cluster's schedulers and controllers. `podium simulate` replays the file and
    compares its own reactions. What was recorded survives a kill: the next start completes the file.
    """
    from podium.api.errors import escape
    from podium.api.times import format_duration
    from podium.app.console.page import counted
    from podium.app.recording.recording import Limits, record

    def say(line: str) -> None:
        click.echo(f"podium: {escape(line, 1_000)}", err=True)

    if every is not None and every < _SHORTEST_NS:
        raise click.BadParameter("files of less than a second are not useful", param_hint="--every")
    made = record(cluster, target, Limits(length, max_size * _MEBIBYTE, every), say)
    ended = "the file is full" if made.is_full and every is None else "recorded"
    files = "" if every is None else f"{counted(made.files, 'file')}, "
    say(f"{ended}: {files}{format_duration(made.length_ns)}, {made.steps:,} steps, {made.events:,} events")
