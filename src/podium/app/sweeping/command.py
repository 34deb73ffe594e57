"""`podium sweep`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.api.errors import PodiumError, os_error_as
from podium.app.console import options as shared
from podium.app.console.command import Command, option

if TYPE_CHECKING:
    from podium.api.errors import Validation
    from podium.api.input.codec import Input
    from podium.app.sweeping.run_folder import RunFolder
    from podium.app.sweeping.sweep import Sweep
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
@option(
    "--vary varied",
    "A setting with several values; all combinations are played. NAME is an option of simulate (until, start-delay, "
    "bind-delay, latency, termination, expendable-pods-priority-cutoff, kubernetes-version, feature-gates), filename "
    "(one more file of objects), config (a configuration's file), its field percentageOfNodesToScore, "
    "maxFutilePreemptions or nominationClearing, or a plugin's argument such as DefaultPreemption.spareMirrorPods.",
    metavar="NAME=VALUE,...",
    multiple=True,
)
@option("--seeds", "The number of seeds.", type=click.IntRange(1, 1_000_000), default=1, show_default=True)
@option("--first-seed", "The first seed; the others follow.", type=int, default=0, show_default=True)
@shared.validate_option
@shared.config_option
@option("-j --jobs", "The number of parallel runs; one per core if unset.", type=click.IntRange(min=1), metavar="N")
@option(
    "--folder",
    "Keep the outcome of each run in a folder or an object store (s3://bucket/folder), and play only runs that "
    "have none there: this resumes a stopped sweep.",
    metavar="URL",
)
@option("--again", "Repeat runs whose outcome in the folder is an error.", is_flag=True)
@option("--known", "Play nothing; answer from the runs in the folder.", is_flag=True)
@option(
    "--shard",
    "Play only every Nth run, beginning with number I, from 0: so N machines share a sweep.",
    metavar="I/N",
    default="0/1",
    show_default=True,
    callback=_read_shard,
)
@option("--dask scheduler", "Play the runs on the workers of a Dask scheduler: tcp://host:8786.", metavar="URL")
@option(
    "--kubernetes",
    "Play the runs in the pods of an Indexed Job, which share the --folder in an object store: create it, follow it, "
    "and delete it at its end.",
    is_flag=True,
)
@option("--pods", "The Job's pods.", type=click.IntRange(1, 10_000), default=8, show_default=True)
@option("--image", "The image of the pods; default: that of --job, or podium with this version as its tag.")
@option(
    "--job job_file",
    "A Job to complete, with what the pods need besides: credentials of the store, resources, tolerations.",
    metavar="FILE",
)
@option("--job-context", "The context of the Job; default: the current one.", default="", metavar="NAME")
@option("--dry-run", "Prepare the folder, and print the Job instead of creating it.", is_flag=True)
@option("--planned", "Play the sweep that the folder has for a Job's pods.", metavar="PLAN")
@shared.output_option_of(_FORMS)
@option("--save answer_file", "The file to write the answer to.", type=click.Path(dir_okay=False, writable=True))
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
    kubernetes: bool,
    planned: str | None,
    **job: Any,
) -> None:
    """Run a simulation many times, and compare the results.

    Runs go side by side, on all cores of this machine or on many machines; the answer is the same wherever they are
    played. There is a row for each run, with its settings, its seed, and the figures of its summary.
    """
    from podium.app.console.output import say
    from podium.app.console.progress import ProgressBar
    from podium.app.console.reading import read_shown
    from podium.app.inputs import read_settings
    from podium.app.sweeping.run_folder import RunFolder
    from podium.app.sweeping.sweep import FILENAME, dask, local_engine, make_sweep, play_all, read_variations
    from podium.app.sweeping.sweep_result import SweepResult

    if folder is None and (again or known or kubernetes or planned):
        raise click.UsageError(
            "--again, --known, --kubernetes and --planned are about the outcomes in a folder; name it with --folder"
        )
    if form in _BINARY and answer_file is None and sys.stdout.isatty():
        raise click.UsageError(f"-o {form} is not for a terminal; name a file with --save")
    kept = None if folder is None else RunFolder(folder)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    engine = dask(scheduler) if scheduler else local_engine(jobs or (1 if kubernetes else cores))
    if kept is not None and planned:
        # An error is an outcome, too: the Job does not repeat it.
        played = play_all(kept.planned(planned), engine, None, kept, shard, again=again)
        click.echo(f"{len(played):,} runs of shard {shard[0]}/{shard[1]} have their outcomes in the folder")
        return
    variations = read_variations(varied)
    if "-" in source.files and len(variations.get(FILENAME, ())) > 1:
        raise PodiumError("-f -: standard input can be read once, and filename is varied; name a file instead")

    def read(file: str) -> Input:
        return read_shown(replace(source, files=(*source.files, file)) if file else source.needed(), validation)

    settings = read_settings(config or None, ignore_extenders=True)
    wanted = make_sweep(variations, read, settings, options, range(first_seed, first_seed + seeds))
    if kept is not None and kubernetes and not _play_on_cluster(wanted, kept, jobs or 1, **job):
        return
    runs = len(wanted.runs[shard[0] :: shard[1]])
    if not runs:
        say(f"shard {shard[0]}/{shard[1]} has no runs: there are {len(wanted.runs):,}")
        return
    with ProgressBar(f"0 of {runs:,} runs") as bar:
        played = play_all(
            wanted,
            engine,
            lambda share: bar.update(share, lambda: f"{round(share * runs):,} of {runs:,} runs"),
            kept,
            shard,
            again=again,
            plays=not (known or kubernetes),
        )
    if not played:
        raise PodiumError(f"--folder {folder}: it has the outcome of none of {runs:,} runs yet")
    _show(SweepResult(played, wanted), runs, form, answer_file)


def _play_on_cluster(
    sweep: Sweep, kept: RunFolder, jobs: int, *, dry_run: bool, job_context: str, pods: int, **template: Any
) -> bool:
    """Play the runs in a Job, or print the Job; return whether they have been played."""
    import asyncio

    from podium.app.console.output import in_yaml, say
    from podium.app.console.progress import ProgressBar
    from podium.app.sweeping.sweep_job import add_plan, completed_job, run_job

    runs = sweep.runs
    job = completed_job(f"podium-sweep-{kept.name_of(sweep)}", kept.url, min(pods, len(runs)), jobs, **template)
    if dry_run:
        click.echo(in_yaml(add_plan(job, kept.plan(sweep))), nl=False)
    elif len(kept.files_of(runs)) < len(runs):
        with ProgressBar("starting the Job") as bar:

            def watch(pods: str) -> None:
                done = len(kept.files_of(runs))
                bar.update(done / len(runs), lambda: f"{done:,} of {len(runs):,} runs; {pods}")

            asyncio.run(run_job(job_context, job, lambda: kept.plan(sweep), watch, say))
        kept.forget_plans(sweep)
    return not dry_run


def _show(result: SweepResult, wanted: int, form: str, target: str | None) -> None:
    """Write the answer to standard output or a file, and the caveats to standard error if the form has none.

    Raises PodiumError at the end if runs have failed.
    """
    from podium.app.console.output import say, show_answer, write_private

    runs = result.runs
    if len(runs) < wanted:
        say(f"caveat: {wanted - len(runs):,} of {wanted:,} runs have no outcome in the folder yet")
    for caveat in result.caveats if form in (*_BINARY, "csv") else ():
        say(f"caveat: {caveat.message}")
    if target is not None and target != "-":
        with os_error_as("cannot be written", target):
            write_private(Path(target), _content(result, form))
    elif form in _BINARY:
        click.echo(_content(result, form), nl=False)
    else:
        show_answer(result, form)
    if failed := sum(bool(run.outcome.error) for run in runs):
        raise PodiumError(f"{failed:,} of {len(runs):,} runs have no result; the answer says why")


def _content(result: SweepResult, form: str) -> bytes:
    """Return the content of a file with the answer."""
    from podium.app.console.output import in_json, in_yaml
    from podium.app.sweeping.sweep_result import in_arrow

    if form in _BINARY:
        return in_arrow(result.frame(), form)
    if form in ("json", "yaml"):
        return (in_json if form == "json" else in_yaml)(result.to_dict()).encode()
    if form == "csv":
        return result.csv().encode()
    return (result.html() if form == shared.HTML else result.text).encode()
