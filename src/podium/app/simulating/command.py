"""`podium simulate`."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from podium.app.console.command import Command
from podium.app.console.options import HTML, Duration, picture_output_option, single_run_options, validate_option
from podium.app.console.source import Source, source_options

if TYPE_CHECKING:
    from podium.api.warnings import Validation
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
    help="Let the steps of a recording or a scenario follow so many times faster.",
)
@click.option(
    "--expendable-pods-priority-cutoff",
    "priority_cutoff",
    type=int,
    metavar="N",
    help="Below it pods neither get nodes from the autoscaler nor keep them; not the scenario's own cut-off.",
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

    They are there from the start; a Scenario among them says what comes later. The answer tells the story: who is
    placed, preempted, started and ended when, where all are at the end, and who still waits and why.
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
        options,
        priority_cutoff=priority_cutoff,
        tells_placements=form == HTML,
        usual_latency_ns=USUAL_LATENCY_NS,
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

    def told() -> str:
        return f"simulating, at {format_duration(simulation.elapsed_ns // _SECOND * _SECOND)}"

    with ProgressBar("simulating") as bar:
        while simulation.step():
            bar.update(share_done(simulation), told)
