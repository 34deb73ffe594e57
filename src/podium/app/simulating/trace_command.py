"""`podium trace`: recorded workloads, as manifests and a scenario."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO, cast

import click

from podium.app.console.command import Command, Group

_EPILOG = """
\b
Example: the first 1,000 pods of the trace, played at once
  podium trace openb --nodes nodes.csv --pods pods.csv --limit 1000 | podium simulate -f -
"""


@click.group(cls=Group)
def trace() -> None:
    """Turn recorded workloads into manifests and a Scenario, which `podium simulate` plays."""


@trace.command(cls=Command, epilog=_EPILOG, short_help="Convert the openb trace of a production GPU cluster.")
@click.option("--nodes", metavar="FILE", required=True, help="The trace's nodes.csv.")
@click.option("--pods", metavar="FILE", required=True, help="The trace's pods.csv.")
@click.option("-o", "--output", metavar="FILE", default="-", show_default=True, help="The file to write; - for stdout.")
@click.option("--limit", type=click.IntRange(min=0), help="Take only so many pods, those that come first.")
def openb(nodes: str, pods: str, output: str, limit: int | None) -> None:
    """Convert the openb trace of a production GPU cluster (Alibaba cluster-trace-gpu-v2023).

    Writes the priority classes and nodes, and a Scenario in which the pods arrive, as JSON documents, one a line.
    Latency-sensitive and Guaranteed pods get the highest priority, best-effort ones the lowest.
    """
    from podium.sim.traces.openb import read_trace

    found = read_trace(nodes, pods)
    if limit is not None:
        found = replace(found, arrivals=sorted(found.arrivals, key=lambda arrival: arrival[0])[:limit])
    with click.open_file(output, "wb") as stream:
        found.write(cast(BinaryIO, stream))
        stream.flush()
