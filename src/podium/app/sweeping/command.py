"""`podium sweep`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from podium.api.errors import PodiumError
from podium.app.console.command import Command
from podium.app.console.options import HTML, Source, config_option, run_options, source_options, validate_option

if TYPE_CHECKING:
    from podium.api.input.codec import Input
    from podium.api.warnings import Validation
    from podium.app.sweeping.sweep import Played, Sweep
    from podium.sim.run_options import RunOptions

_BINARY = ("parquet", "arrow")
_FORMS = ("text", "json", "yaml", "csv", HTML, *_BINARY)
_EPILOG = """
\b
Which setting preempts least? Two ways of clearing nominations, five seeds each:
  podium sweep -f examples/starvation-1.yaml --vary nominationClearing=AllLower,Unfit --seeds 5
"""


@click.command(cls=Command, epilog=_EPILOG)
@source_options
@click.option(
    "--vary",
    "varied",
    metavar="NAME=VALUE,...",
    multiple=True,
    help="A setting with several values; several settings are combined. NAME is an option of simulate (until, "
    "start-delay, bind-delay, expendable-pods-priority-cutoff, feature-gates), filename (a further file of objects), "
    "config (a configuration's file), a field of the configuration (percentageOfNodesToScore, maxFutilePreemptions, "
    "nominationClearing), or an argument of a plugin such as DefaultPreemption.spareMirrorPods.",
)
@click.option("--seeds", type=click.IntRange(1, 1_000_000), default=1, show_default=True, help="The number of seeds.")
@click.option("--first-seed", type=int, default=0, show_default=True, help="The first of them; the others follow.")
@validate_option
@config_option
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="The number of parallel runs; one per core if unset."
)
@click.option("--scheduler", metavar="URL", help="Play them on the workers of a Dask scheduler: tcp://host:8786.")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(_FORMS),
    default="text",
    show_default=True,
    help="The form of the answer.",
)
@click.option("--to", "target", type=click.Path(dir_okay=False, writable=True), help="The file to write the answer to.")
@run_options
def sweep(
    *,
    source: Source,
    varied: tuple[str, ...],
    seeds: int,
    first_seed: int,
    validation: Validation | None,
    config: str | None,
    options: RunOptions,
    jobs: int | None,
    scheduler: str | None,
    form: str,
    target: str | None,
) -> None:
    """Run a simulation many times, and compare the results.

    Runs go side by side, on all cores of this machine or on many machines; the answer is the same wherever they are
    played. There is a row for each run, with its settings, its seed, and the figures of its summary.
    """
    from podium.app.console.progress import ProgressBar
    from podium.app.console.reading import read_shown
    from podium.app.inputs import read_settings
    from podium.app.sweeping.sweep import FILENAME, dask, local_engine, make_sweep, play_all, read_variations

    if form in (*_BINARY, HTML) and target is None and sys.stdout.isatty():
        raise click.UsageError(f"-o {form} is not for a terminal; name a file with --to")
    variations = read_variations(varied)
    if "-" in source.files and len(variations.get(FILENAME, ())) > 1:
        raise PodiumError("-f -: standard input can be read once, and filename is varied; name a file instead")

    def read(file: str) -> Input:
        return read_shown(replace(source, files=(*source.files, file)) if file else source, validation)

    settings = read_settings(config or None, ignore_extenders=True)
    wanted = make_sweep(variations, read, settings, options, range(first_seed, first_seed + seeds))
    runs = len(wanted.runs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ProgressBar(f"0 of {runs:,} runs") as bar:
        played = play_all(
            wanted,
            dask(scheduler) if scheduler else local_engine(jobs or cores),
            lambda share: bar.update(share, lambda: f"{round(share * runs):,} of {runs:,} runs"),
        )
    _show(wanted, played, form, target)
    failed = sum(bool(run.outcome.error) for run in played)
    if failed:
        raise PodiumError(f"{failed:,} of {len(played):,} runs have no result; the answer says why")


def _show(sweep: Sweep, played: list[Played], form: str, target: str | None) -> None:
    """Write the answer to standard output or a file, and the caveats to standard error if the form has none."""
    from podium.app.sweeping.sweep import caveats_of

    answer = _answer(sweep, played, form, target)
    if form in (*_BINARY, "csv"):
        for caveat in caveats_of(played):
            click.echo(f"podium: caveat: {caveat.message}", err=True)
    if target is None:
        click.echo(answer, nl=False, color=True if form == "text" else None)
    else:
        with click.open_file(target, "wb", atomic=True) as file:
            file.write(answer.encode() if isinstance(answer, str) else answer)


def _answer(sweep: Sweep, played: list[Played], form: str, target: str | None) -> str | bytes:
    from podium.app.console.output import in_json, in_yaml, new_page
    from podium.app.console.page import Page
    from podium.app.sweeping.sweep_result import SweepResult, in_arrow, write_sweep

    result = SweepResult(played, sweep)
    if form in _BINARY:
        return in_arrow(result.frame(), form)
    if form == "csv":
        return result.csv()
    if form == HTML:
        return result.html()
    if form == "text":
        page = new_page() if target is None else Page()
        write_sweep(page, played)
        return page.text
    return in_json(result.to_dict()) if form == "json" else in_yaml(result.to_dict())
