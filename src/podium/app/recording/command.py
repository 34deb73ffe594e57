"""`podium record`."""

from __future__ import annotations

import click

from podium.app.console.command import Command
from podium.app.console.options import ClusterSource, Duration, cluster_options

_MEBIBYTE = 1 << 20
_EPILOG = """
\b
Example: record for an hour, and replay it with another configuration
  podium record --context prod --for 1h -o hour.podium
  podium simulate -f hour.podium --config scheduler.yaml
"""


@click.command(cls=Command, epilog=_EPILOG)
@cluster_options
@click.option("-o", "--output", "target", metavar="FILE", required=True, help="The file to write.")
@click.option("--for", "length", type=Duration(), help="How long to record; default: until interrupted.")
@click.option(
    "--max-size",
    type=click.IntRange(1, 1000),
    default=500,
    show_default=True,
    metavar="MIB",
    help="End before the file exceeds this size, uncompressed.",
)
def record(*, cluster: ClusterSource, target: str, length: int | None, max_size: int) -> None:
    """Record the changes of a cluster in a file.

    Rights to list and watch are enough. The file has the objects at the start, a Scenario with the later requests of
    users, and the reactions of the cluster's schedulers and controllers. `podium simulate` replays the file and
    compares its own reactions.
    """
    from podium.api.errors import escape
    from podium.api.times import format_duration
    from podium.app.recording.recording import Limits, record

    def say(line: str) -> None:
        click.echo(f"podium: {escape(line, 1_000)}", err=True)

    made = record(cluster, target, Limits(length, max_size * _MEBIBYTE), say)
    ended = "the file is full" if made.is_full else "recorded"
    say(f"{ended}: {format_duration(made.length_ns)}, {made.steps:,} steps, {made.events:,} events")
