"""`podium bench`: how fast decisions are made on this machine."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import click

from podium.app.bench import Measurement, measure
from podium.app.bench_workloads import DEFAULT_WORKLOADS, WORKLOADS
from podium.app.command import Command
from podium.app.options import feature_gates_option, output_option
from podium.app.output import show
from podium.framework.feature_gates import FeatureGates

_EPILOG = """
\b
Example:
  podium bench basic preemption --nodes 1000 --pods 500
"""
_COLUMNS = ("workload", "nodes", "placed", "pods", "pods/s", "attempts/s", "p50 us", "p90 us", "p99 us", "peak MiB")


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("workloads", metavar="[WORKLOAD]...", nargs=-1, type=click.Choice(list(WORKLOADS)))
@click.option("--nodes", type=click.IntRange(1, 1_000_000), help="How many nodes, not the workload's own number.")
@click.option("--pods", type=click.IntRange(1, 10_000_000), help="How many pods to decide about, likewise.")
@feature_gates_option
@output_option
def bench(
    *, workloads: tuple[str, ...], nodes: int | None, pods: int | None, feature_gates: FeatureGates, form: str
) -> None:
    """Measure decisions a second, how long each takes, and peak memory, in process and without a cluster.

    Workloads: basic, preemption, affinity, antiaffinity, spread, unschedulable, mixed-churn and explain, which run
    unless some are named; and scale, a cluster of 100,000 nodes and 1,000,000 pods. Each has a process of its own, so
    that its peak memory is its own.
    """
    measured = []
    for name in workloads or DEFAULT_WORKLOADS:
        if sys.stderr.isatty():
            click.echo(f"{name}: {WORKLOADS[name].description} ...", err=True)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            measured.append(pool.submit(measure, name, nodes, pods, feature_gates).result())
    if form == "text":
        click.echo(in_text(measured), nl=False)
    else:
        show([measurement.to_dict() for measurement in measured], form)


def in_text(measured: list[Measurement]) -> str:
    """A table with a line for each workload."""
    rows = [_COLUMNS, *(_row(measurement) for measurement in measured)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = []
    for name, *numbers in rows:
        cells = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)


def _row(measurement: Measurement) -> tuple[str, ...]:
    figures = (
        measurement.nodes,
        measurement.placed,
        measurement.pods,
        measurement.pods_per_second,
        measurement.attempts_per_second,
        *(measurement.attempt_us[rank] for rank in ("p50", "p90", "p99")),
        measurement.peak_memory_mib,
    )
    return (measurement.workload, *(f"{figure:,.0f}" for figure in figures))
