"""`podium bench`: what decisions, simulations, the loading of dumps and the API over HTTP cost on this machine."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import msgspec

from podium.api.versions.choice import ReleaseChoice
from podium.app.bench.measurement import Measurement, Run, ratios_to, read_run, run_of, write_measurements
from podium.app.bench.workloads import FULL, USUAL, WORKLOADS, Wanted, measure
from podium.app.console.command import Command
from podium.app.console.options import output_option, release_options
from podium.app.console.output import in_json, new_page, show, show_page
from podium.app.console.progress import ProgressBar
from podium.app.console.source import Source, optional_source_options

_EPILOG = """
\b
Example: two workloads, then the same again, beside what was measured first
  podium bench basic@1000 preemption --nodes 500 --pods 500 --save before.json
  podium bench basic@1000 preemption --nodes 500 --pods 500 --compare before.json
"""
_MOST_NODES, _MOST_PODS = 1_000_000, 10_000_000
_WANTED = re.compile(r"(?P<workload>[^@]+)(?:@(?P<nodes>[1-9]\d{0,7})(?:/(?P<pods>[1-9]\d{0,8}))?)?", re.ASCII)


class _WantedText(click.ParamType[Wanted]):
    """A workload by name, with its numbers of nodes and pods if they are not its own: `basic@500`, `basic@500/1000`."""

    name = "workload"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Wanted:
        """Read the text, or fail with what is wrong with it."""
        found = _WANTED.fullmatch(value)
        if found is None or found["workload"] not in WORKLOADS:
            known = ", ".join(WORKLOADS)
            self.fail(f"{value!r} is none of {known}, alone or as NAME@NODES or NAME@NODES/PODS", param, ctx)
        nodes, pods = (None if found[part] is None else int(found[part]) for part in ("nodes", "pods"))
        if (nodes or 0) > _MOST_NODES or (pods or 0) > _MOST_PODS:
            self.fail(f"{value!r} has more than {_MOST_NODES} nodes or {_MOST_PODS} pods", param, ctx)
        return Wanted(found["workload"], nodes, pods)


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("workloads", metavar="[WORKLOAD[@NODES[/PODS]]]...", nargs=-1, type=_WantedText())
@click.option("--nodes", type=click.IntRange(1, _MOST_NODES), help="How many nodes, where none are given with @.")
@click.option("--pods", type=click.IntRange(1, _MOST_PODS), help="How many pods to decide about, likewise.")
@click.option("--full", is_flag=True, help="All workloads at their full sizes; some minutes.")
@optional_source_options
@click.option("--save", metavar="FILE", help="A file to write the measurements to as well, as JSON.")
@click.option(
    "--compare", metavar="FILE", help="An earlier run, as --save or -o json wrote it: shows the ratios to it."
)
@release_options
@output_option
def bench(
    *,
    workloads: tuple[Wanted, ...],
    nodes: int | None,
    pods: int | None,
    full: bool,
    source: Source,
    save: str | None,
    compare: str | None,
    release: ReleaseChoice,
    form: str,
) -> None:
    """Measure CPU seconds, operations and peak memory of decisions, simulations, loading and the API over HTTP.

    Workloads: basic, preemption, preemption-across, preemption-gangs, affinity, antiaffinity, spread, unschedulable,
    mixed-churn, scale (decisions of a scheduler alone, without a cluster); explain; simulation; score, score-unscoped
    (a simulation with a plugin); load, question, fit, plan-drain, plan-deploy, plan-fail (answers about an EKS-like
    cluster); reschedule (a plan of a rescheduler); apiserver (pods over HTTP); live (pods bound over HTTP). Without any
    named, most of them run, in about a minute and a half. Each has a process of its own.

    simulation, score and score-unscoped play what -f and --context give, such as the output of podium trace, if they
    give something; a cluster is read once, before anything is measured.
    """
    earlier = None if compare is None else read_run(compare)
    chosen = [_sized(wanted, nodes, pods) for wanted in workloads or (FULL if full else USUAL)]
    with _files(source) as files:
        run = run_of(list(_measured(chosen, files, release)))
    if save is not None:
        Path(save).write_text(in_json(msgspec.to_builtins(run)), encoding="ascii")
    _show(run, earlier, form)


def _sized(wanted: Wanted, nodes: int | None, pods: int | None) -> Wanted:
    return replace(wanted, nodes=nodes if wanted.nodes is None else wanted.nodes, pods=wanted.pods or pods)


@contextmanager
def _files(source: Source) -> Iterator[tuple[str, ...]]:
    """The files to play; what is in the cluster is kept in the first for as long."""
    if source.cluster is None:
        yield source.files
        return
    from podium.app.snapshots.cluster import keep_cluster
    from podium.app.snapshots.file import SnapshotFile

    with TemporaryDirectory(prefix="podium-bench-") as folder:
        target = str(Path(folder) / "cluster.podium")
        with SnapshotFile(target) as file:
            file.end(keep_cluster(file, source.cluster))
        yield (target, *source.files)


def _measured(chosen: list[Wanted], files: tuple[str, ...], release: ReleaseChoice) -> Iterator[Measurement]:
    """What each workload comes to, in a process of its own, so that its memory is its own."""
    with ProgressBar("measuring") as bar:
        for place, wanted in enumerate(chosen):
            bar.update(place / len(chosen), partial(_told, wanted))
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                yield from pool.submit(measure, wanted, files, release).result()


def _told(wanted: Wanted) -> str:
    return f"{wanted.workload}: {WORKLOADS[wanted.workload].description}"


def _show(run: Run, earlier: Run | None, form: str) -> None:
    ratios = None if earlier is None else ratios_to(earlier, run.measurements)
    if form == "text":
        page = new_page()
        write_measurements(page, run.measurements, ratios)
        show_page(page)
        return
    value = msgspec.to_builtins(run)
    if ratios is not None:
        for measurement, compared in zip(value["measurements"], ratios, strict=True):
            measurement["compared"] = msgspec.to_builtins(compared)
    show(value, form)
