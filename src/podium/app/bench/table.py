"""A run as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from podium.app.bench.comparison import Ratios
from podium.app.bench.measurement import Measurement

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


def in_text(measurements: Sequence[Measurement], ratios: Sequence[Ratios | None] | None = None) -> str:
    """A table with a line for each measurement, and the ratios where there is something to compare with."""
    rows: list[tuple[str, ...]] = [_COLUMNS if ratios is None else (*_COLUMNS, *_RATIOS)]
    for index, measurement in enumerate(measurements):
        row = _row(measurement)
        rows.append(row if ratios is None else (*row, *_ratio_cells(ratios[index])))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *numbers in rows:
        cells = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    for measurement in measurements:
        if measurement.times_without is not None:
            lines.append(
                f"{measurement.workload}: {measurement.times_without:.2f} times the CPU s of the same without it"
            )
    return "".join(f"{line}\n" for line in lines)


def _row(measurement: Measurement) -> tuple[str, ...]:
    times = measurement.attempt_us or {}
    return (
        measurement.workload,
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
