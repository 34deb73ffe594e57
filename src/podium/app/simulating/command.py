"""`podium simulate`."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from podium.app.console.command import Command, Group
from podium.app.console.options import (
    HTML,
    Duration,
    Source,
    picture_output_option,
    single_run_options,
    source_options,
    validate_option,
)

if TYPE_CHECKING:
    from podium.api.errors import Validation
    from podium.sim.run_options import RunOptions
    from podium.sim.simulation import Simulation

_EPILOG = """
\b
Example: four pods that want one node, for two minutes
  podium simulate -f examples/starvation-1.yaml
"""

_SECOND = 10**9


@click.command(cls=Command, epilog=_EPILOG)
@source_options
@validate_option
@click.option("--from", "from_ns", type=Duration(), default=0, help="Play a recording from this time on.")
@click.option("--to", "to_ns", type=Duration(), help="Play a recording or a scenario up to this time of its own.")
@click.option(
    "--speed",
    type=click.FloatRange(0.001, 1_000_000),
    default=1.0,
    help="Speed up the steps of a recording or a scenario by this factor.",
)
@click.option(
    "--expendable-pods-priority-cutoff",
    "priority_cutoff",
    type=int,
    metavar="N",
    help="The autoscaler ignores pods with a lower priority; overrides the scenario's cut-off.",
)
@picture_output_option
@click.option("--events", "every_event", is_flag=True, help="List every event, however many there are.")
@single_run_options
def simulate(
    *,
    source: Source,
    validation: Validation | None,
    options: RunOptions,
    from_ns: int,
    to_ns: int | None,
    speed: float,
    priority_cutoff: int | None,
    form: str,
    every_event: bool,
) -> None:
    """Play what happens to the objects in the files, in virtual time.

    The objects exist from the start; a Scenario among them describes later events. The answer reports when pods are
    placed, preempted, started and ended, where they are at the end, and which ones still wait and why.
    """
    # This process makes many objects, hardly any cycles, and then ends.
    gc.disable()
    from podium.app.console.output import show_answer
    from podium.app.console.progress import ProgressBar
    from podium.app.console.reading import read_shown
    from podium.app.simulating.simulation_result import shown_result
    from podium.app.simulating.text import write_simulation
    from podium.sim.latencies import USUAL_LATENCY_NS
    from podium.sim.recording.excerpt import Excerpt, excerpt
    from podium.sim.run import simulation_of

    options = replace(
        options, priority_cutoff=priority_cutoff, records_placements=form == HTML, usual_latency_ns=USUAL_LATENCY_NS
    )
    found = excerpt(read_shown(source, validation), Excerpt(from_ns, to_ns, speed))
    with ProgressBar("preparing the simulation"):
        simulation = simulation_of(found.documents, options)
    _play(simulation)
    result = shown_result(found, simulation, options)
    show_answer(result, form, lambda page: write_simulation(page, result, every_event=every_event))


def _play(simulation: Simulation) -> None:
    from podium.api.times import format_duration
    from podium.app.console.progress import ProgressBar
    from podium.sim.run import share_done

    def description() -> str:
        return f"simulating, at {format_duration(simulation.elapsed_ns // _SECOND * _SECOND)}"

    with ProgressBar("simulating") as bar:
        while simulation.step():
            bar.update(share_done(simulation), description)


_TRACE_EPILOG = """
\b
Example: the first 1,000 pods of the trace, played at once
  podium trace openb --nodes nodes.csv --pods pods.csv --limit 1000 | podium simulate -f -

\b
Example: a fiftieth of the nodes, pods that come four times as fast, GPUs as devices
  podium trace openb --nodes nodes.csv --pods pods.csv --scale-nodes 0.02 --speed-up 4 --devices -o pressed.json
"""


@click.group(cls=Group)
def trace() -> None:
    """Convert recorded workloads into manifests and a Scenario, which `podium simulate` plays."""


@trace.command(cls=Command, epilog=_TRACE_EPILOG, short_help="Convert the openb trace of a production GPU cluster.")
@click.option("--nodes", metavar="FILE", required=True, help="The trace's nodes.csv.")
@click.option("--pods", metavar="FILE", required=True, help="The trace's pods.csv.")
@click.option(
    *("-o", "--output", "--save", "output"),
    metavar="FILE",
    default="-",
    show_default=True,
    help="The file to write; - for stdout.",
)
@click.option("--limit", type=click.IntRange(min=0), help="Convert only the first pods, this many.")
@click.option(
    "--scale-nodes",
    metavar="SHARE",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    help="Keep only this share of the nodes of each model and size, such as 0.3.",
)
@click.option(
    "--speed-up",
    metavar="FACTOR",
    type=click.FloatRange(0, 1_000_000, min_open=True),
    default=1.0,
    help="Speed up the arrivals of pods by this factor, but not the pods.",
)
@click.option("--devices", is_flag=True, help="Make GPUs devices that pods claim, instead of an amount for each node.")
@click.option("--owners", is_flag=True, help="Create ReplicaSets and Jobs, so that evicted pods are replaced.")
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
