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

\b
Example: a fiftieth of the nodes, pods that come four times as fast, GPUs as devices
  podium trace openb --nodes nodes.csv --pods pods.csv --scale-nodes 0.02 --speed-up 4 --devices -o pressed.json
"""


@click.group(cls=Group)
def trace() -> None:
    """Turn recorded workloads into manifests and a Scenario, which `podium simulate` plays."""


@trace.command(cls=Command, epilog=_EPILOG, short_help="Convert the openb trace of a production GPU cluster.")
@click.option("--nodes", metavar="FILE", required=True, help="The trace's nodes.csv.")
@click.option("--pods", metavar="FILE", required=True, help="The trace's pods.csv.")
@click.option("-o", "--output", metavar="FILE", default="-", show_default=True, help="The file to write; - for stdout.")
@click.option("--limit", type=click.IntRange(min=0), help="Take only so many pods, those that come first.")
@click.option(
    "--scale-nodes",
    metavar="SHARE",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    help="Keep only such a share of the nodes, of each model and size alike: 0.3.",
)
@click.option(
    "--speed-up",
    metavar="FACTOR",
    type=click.FloatRange(0, 1_000_000, min_open=True),
    default=1.0,
    help="Let the pods come so many times as fast; they run as long as before.",
)
@click.option("--devices", is_flag=True, help="GPUs as devices that pods claim, not as one sum for each node.")
@click.option("--owners", is_flag=True, help="Pods belong to ReplicaSets and Jobs, so that evicted ones come again.")
def openb(
    *,
    nodes: str,
    pods: str,
    output: str,
    limit: int | None,
    scale_nodes: float,
    speed_up: float,
    devices: bool,
    owners: bool,
) -> None:
    """Convert the openb trace of a production GPU cluster (Alibaba cluster-trace-gpu-v2023).

    Writes the priority classes and nodes, and a Scenario in which the pods arrive, as JSON documents, one a line.
    Latency-sensitive and Guaranteed pods get the highest priority, best-effort ones the lowest.
    """
    from podium.sim.trace_import import read_trace, sped_up, with_devices, with_fewer_nodes, with_owners

    found = read_trace(nodes, pods)
    if limit is not None:
        found = replace(found, arrivals=sorted(found.arrivals, key=lambda arrival: arrival[0])[:limit])
    found = sped_up(with_fewer_nodes(found, scale_nodes), speed_up)
    if devices:
        found = with_devices(found)
    if owners:
        found = with_owners(found)
    with click.open_file(output, "wb") as stream:
        found.write(cast(BinaryIO, stream))
        stream.flush()
