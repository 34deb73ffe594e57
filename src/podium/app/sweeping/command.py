"""`podium sweep`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from podium.api.errors import PodiumError
from podium.app.console import options as shared
from podium.app.console.command import Command

if TYPE_CHECKING:
    from podium.api.errors import Validation
    from podium.api.input.codec import Input
    from podium.app.sweeping.sweep_result import SweepResult
    from podium.sim.run_options import RunOptions

_BINARY = ("parquet", "arrow")
_FORMS = ("text", "json", "yaml", "csv", shared.HTML, *_BINARY)
_EPILOG = """
\b
Which setting preempts least? Two ways of clearing nominations, five seeds each:
  podium sweep -f examples/starvation-1.yaml --vary nominationClearing=AllLower,Unfit --seeds 5
"""


def _read_shard(_context: click.Context, _parameter: click.Parameter, text: str) -> tuple[int, int]:
    index, slash, of = text.partition("/")
    if slash and index.isdecimal() and of.isdecimal() and int(index) < int(of):
        return int(index), int(of)
    raise click.BadParameter(f"{text} is not I/N with I from 0 to N-1, such as 0/4")


@click.command(cls=Command, epilog=_EPILOG)
@shared.source_options
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
@shared.validate_option
@shared.config_option
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="The number of parallel runs; one per core if unset."
)
@click.option(
    "--folder",
    metavar="URL",
    help="Keep the outcome of each run in a folder or an object store (s3://bucket/folder), and play only runs that "
    "have none there: a sweep that was stopped goes on.",
)
@click.option("--again", is_flag=True, help="Play runs again whose outcome in the folder is an error.")
@click.option("--known", is_flag=True, help="Play nothing; answer with the runs that the folder has.")
@click.option(
    "--shard",
    metavar="I/N",
    default="0/1",
    show_default=True,
    callback=_read_shard,
    help="Play only every Nth run, beginning with number I, from 0: so N machines share a sweep.",
)
@click.option(
    "--dask", "scheduler", metavar="URL", help="Play them on the workers of a Dask scheduler: tcp://host:8786."
)
@shared.output_option_of(_FORMS)
@click.option(
    "--save", "answer_file", type=click.Path(dir_okay=False, writable=True), help="The file to write the answer to."
)
@shared.run_options
def sweep(
    *,
    source: shared.Source,
    varied: tuple[str, ...],
    seeds: int,
    first_seed: int,
    validation: Validation | None,
    config: str | None,
    options: RunOptions,
    jobs: int | None,
    folder: str | None,
    again: bool,
    known: bool,
    shard: tuple[int, int],
    scheduler: str | None,
    form: str,
    answer_file: str | None,
) -> None:
    """Run a simulation many times, and compare the results.

    Runs go side by side, on all cores of this machine or on many machines; the answer is the same wherever they are
    played. There is a row for each run, with its settings, its seed, and the figures of its summary.
    """
    from podium.app.console.progress import ProgressBar
    from podium.app.console.reading import read_shown
    from podium.app.inputs import read_settings
    from podium.app.sweeping.run_folder import RunFolder
    from podium.app.sweeping.sweep import FILENAME, dask, local_engine, make_sweep, play_all, read_variations
    from podium.app.sweeping.sweep_result import SweepResult

    if folder is None and (again or known):
        raise click.UsageError("--again and --known are about the outcomes in a folder; name it with --folder")

    if form in _BINARY and answer_file is None and sys.stdout.isatty():
        raise click.UsageError(f"-o {form} is not for a terminal; name a file with --save")
    variations = read_variations(varied)
    if "-" in source.files and len(variations.get(FILENAME, ())) > 1:
        raise PodiumError("-f -: standard input can be read once, and filename is varied; name a file instead")

    def read(file: str) -> Input:
        return read_shown(replace(source, files=(*source.files, file)) if file else source.needed(), validation)

    settings = read_settings(config or None, ignore_extenders=True)
    wanted = make_sweep(variations, read, settings, options, range(first_seed, first_seed + seeds))
    runs = len(wanted.runs[shard[0] :: shard[1]])
    if not runs:
        click.echo(f"podium: shard {shard[0]}/{shard[1]} has no runs: there are {len(wanted.runs):,}", err=True)
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ProgressBar(f"0 of {runs:,} runs") as bar:
        played = play_all(
            wanted,
            dask(scheduler) if scheduler else local_engine(jobs or cores),
            lambda share: bar.update(share, lambda: f"{round(share * runs):,} of {runs:,} runs"),
            None if folder is None else RunFolder(folder),
            shard,
            again=again,
            plays=not known,
        )
    if not played:
        raise PodiumError(f"--folder {folder}: it has the outcome of none of {runs:,} runs yet")
    if len(played) < runs:
        click.echo(
            f"podium: caveat: {runs - len(played):,} of {runs:,} runs have no outcome in the folder yet", err=True
        )
    _show(SweepResult(played, wanted), form, answer_file)
    failed = sum(bool(run.outcome.error) for run in played)
    if failed:
        raise PodiumError(f"{failed:,} of {len(played):,} runs have no result; the answer says why")


def _show(result: SweepResult, form: str, target: str | None) -> None:
    """Write the answer to standard output or a file, and the caveats to standard error if the form has none."""
    from podium.app.console.output import in_json, in_yaml, new_page, show_html
    from podium.app.console.page import Page
    from podium.app.sweeping.sweep_result import in_arrow

    answer: str | bytes
    if form in _BINARY:
        answer = in_arrow(result.frame(), form)
    elif form == "csv":
        answer = result.csv()
    elif form == shared.HTML:
        answer = result.html()
    elif form == "text":
        page = new_page() if target is None else Page()
        result.write(page)
        answer = page.text
    else:
        answer = in_json(result.to_dict()) if form == "json" else in_yaml(result.to_dict())
    if form in (*_BINARY, "csv"):
        for caveat in result.caveats:
            click.echo(f"podium: caveat: {caveat.message}", err=True)
    if target is None and form == shared.HTML:
        show_html(str(answer))
    elif target is None:
        click.echo(answer, nl=False, color=True if form == "text" else None)
    else:
        with click.open_file(target, "wb", atomic=True) as file:
            file.write(answer.encode() if isinstance(answer, str) else answer)
