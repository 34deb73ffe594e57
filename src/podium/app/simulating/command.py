"""`podium simulate`."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from podium.app.console import options as shared
from podium.app.console.command import Command, option

if TYPE_CHECKING:
    from podium.api.errors import Validation
    from podium.api.input.codec import Input
    from podium.sim.run_options import RunOptions
    from podium.sim.simulation import Simulation
    from podium.sim.trace_import import Trace

_EPILOG = """
\b
Examples: four pods that want one node, for two minutes; a fiftieth of the nodes of the openb trace, and pods that come
four times as fast
  podium simulate -f examples/starvation-1.yaml
  podium simulate --trace nodes.csv --trace pods.csv --trace-nodes 0.02 --speed 4 --trace-devices
"""


@click.command(cls=Command, epilog=_EPILOG)
@shared.source_options
@shared.validate_option
@option(
    "--trace trace_files",
    "Play a production trace of GPUs: the two files of openb (Alibaba cluster-trace-gpu-v2023), nodes and pods, "
    "or the file of DLRM (cluster-trace-gpu-v2025), for which nodes are supposed. Repeat it for each file.",
    multiple=True,
    metavar="FILE",
)
@option("--trace-limit", "Only the first pods of the trace, this many.", type=click.IntRange(min=0), metavar="N")
@option(
    "--trace-nodes trace_share",
    "Only this share of the trace's nodes of each model and size, such as 0.3.",
    metavar="SHARE",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
)
@option("--trace-devices", "GPUs of the trace are devices that pods claim, not an amount for each node.", is_flag=True)
@option("--trace-owners", "Pods of the trace have ReplicaSets and Jobs, which replace evicted ones.", is_flag=True)
@option("--save", "Write the trace as manifests and a Scenario for -f, and play nothing; - for stdout.", metavar="FILE")
@option("--from from_ns", "Play a recording from this time on.", type=shared.Duration(), default=0)
@option("--to to_ns", "Play a recording or a scenario up to this time of its own.", type=shared.Duration())
@option(
    "--speed",
    "Speed up the steps of a recording or a scenario, or the arrivals of a trace's pods, by this factor.",
    type=click.FloatRange(0.001, 1_000_000),
    default=1.0,
)
@option(
    "--expendable-pods-priority-cutoff priority_cutoff",
    "The autoscaler ignores pods with a lower priority; overrides the scenario's cut-off.",
    type=int,
    metavar="N",
)
@shared.picture_output_option
@option("--events every_event", "List every event, however many there are.", is_flag=True)
@shared.single_run_options
def simulate(
    *,
    source: shared.Source,
    validation: Validation | None,
    options: RunOptions,
    from_ns: int,
    to_ns: int | None,
    speed: float,
    trace_files: tuple[str, ...],
    save: str | None,
    priority_cutoff: int | None,
    form: str,
    every_event: bool,
    **trace_options: Any,
) -> None:
    """Play what happens to the objects in the files, in virtual time.

    The objects exist from the start; a Scenario among them describes later events. The answer reports when pods are
    placed, preempted, started and ended, where they are at the end, and which ones still wait and why.
    """
    # This process makes many objects, hardly any cycles, and then ends.
    gc.disable()
    from podium.app.console.output import show_answer
    from podium.app.console.progress import ProgressBar
    from podium.app.simulating.simulation_result import shown_result
    from podium.app.simulating.text import write_simulation
    from podium.sim.latencies import USUAL_LATENCY_NS
    from podium.sim.recording.excerpt import Excerpt, excerpt
    from podium.sim.run import simulation_of

    trace = _trace(trace_files, speed, **trace_options)
    if save is not None:
        if trace is None:
            raise click.UsageError("--save writes a trace; give each of its files with --trace")
        _write(trace, save)
        return
    options = replace(
        options,
        priority_cutoff=priority_cutoff,
        records_placements=form == shared.HTML,
        usual_latency_ns=USUAL_LATENCY_NS,
    )
    found = excerpt(_read(source, validation, trace), Excerpt(from_ns, to_ns, 1.0 if trace else speed))
    with ProgressBar("preparing the simulation"):
        simulation = simulation_of(found.documents, options)
    _play(simulation)
    result = shown_result(found, simulation, options)
    show_answer(result, form, lambda page: write_simulation(page, result, every_event=every_event))


def _trace(
    files: tuple[str, ...],
    speed: float,
    *,
    trace_limit: int | None,
    trace_share: float,
    trace_devices: bool,
    trace_owners: bool,
) -> Trace | None:
    if not files:
        if trace_limit is not None or trace_share < 1 or trace_devices or trace_owners:
            raise click.UsageError("--trace-limit, --trace-nodes, --trace-devices and --trace-owners change a --trace")
        return None
    from podium.sim.trace_import import read_trace, sped_up, with_devices, with_fewer_nodes, with_owners

    found = read_trace(*files)
    if trace_limit is not None:
        found = replace(found, arrivals=sorted(found.arrivals, key=lambda arrival: arrival[0])[:trace_limit])
    found = sped_up(with_fewer_nodes(found, trace_share), speed)
    if trace_devices:
        found = with_devices(found)
    return with_owners(found) if trace_owners else found


def _write(trace: Trace, file: str) -> None:
    with click.open_file(file, "wb") as stream:
        trace.write(cast(BinaryIO, stream))
        stream.flush()


def _read(source: shared.Source, validation: Validation | None, trace: Trace | None) -> Input:
    """Return the objects of the source, and those of the trace after them."""
    from podium.app.console.reading import read_shown

    if trace is None:
        return read_shown(source.needed(), validation)
    with TemporaryDirectory(prefix="podium-") as folder:
        file = str(Path(folder) / f"{trace.name}.json")
        _write(trace, file)
        return read_shown(replace(source, files=(*source.files, file)), validation)


def _play(simulation: Simulation) -> None:
    from podium.api.times import format_duration
    from podium.app.console.progress import ProgressBar
    from podium.sim.run import play_on

    def show(share: float, at_ns: int) -> None:
        bar.update(share, lambda: f"simulating, at {format_duration(at_ns // 10**9 * 10**9)}")

    with ProgressBar("simulating") as bar:
        play_on(simulation, show)
