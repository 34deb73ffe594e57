"""A run as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from podium.app.bench.comparison import Ratios
from podium.app.bench.measurement import Measurement
from podium.app.console.cells import WORKLOADS, Cell, Name, Part
from podium.app.console.page import Page

_COLUMNS = (
    "workload",
    "nodes",
    "pods",
    "CPU s",
    "pods/s",
    "ops/pod",
    "p50 us",
    "p99 us",
    "load s",
    "peak MiB",
)
_RATIOS = ("x pods/s", "x ops", "x peak")


def write_measurements(
    page: Page, measurements: Sequence[Measurement], ratios: Sequence[Ratios | None] | None = None
) -> None:
    """Write a line for each measurement, and the ratios where there is something to compare with."""
    headings = _COLUMNS if ratios is None else (*_COLUMNS, *_RATIOS)
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in headings]]
    for index, measurement in enumerate(measurements):
        cells = _row(measurement) if ratios is None else (*_row(measurement), *_ratio_cells(ratios[index]))
        rows.append([Name(measurement.workload, WORKLOADS), *cells])
    page.columns(rows, right=range(1, len(headings)))
    for measurement in measurements:
        if measurement.times_without is not None:
            times = f"{measurement.times_without:.2f} times the CPU s of the same without it"
            page.paragraph(f"{measurement.workload}: {times}", hanging=2)


def _row(measurement: Measurement) -> tuple[str, ...]:
    times = measurement.attempt_us or {}
    return (
        f"{measurement.nodes:,}",
        f"{measurement.pods:,}",
        f"{measurement.seconds:.2f}",
        *map(
            _number,
            (
                measurement.pods_per_second,
                measurement.operations_per_pod,
                times.get("p50"),
                times.get("p99"),
            ),
        ),
        f"{measurement.load_seconds:.2f}",
        _number(measurement.peak_memory_mib),
    )


def _number(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,.0f}"


def _ratio_cells(ratios: Ratios | None) -> tuple[str, ...]:
    if ratios is None:
        return ("",) * len(_RATIOS)
    figures = (ratios.pods_per_second, ratios.operations_per_pod, ratios.peak_memory_mib)
    return tuple("" if figure is None else f"{figure:.2f}" for figure in figures)
