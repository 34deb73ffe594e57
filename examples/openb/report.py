"""The table of the experiment beside the published one, and its figures as SVG."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

PUBLISHED = "published-allocation.csv"
"""The file with the published figures."""
_AT = 100
_COLORS = ("#8c8c8c", "#b07aa1", "#59a14f", "#76b7b2", "#f28e2b", "#4e79a7", "#e15759", "#9c2f2f", "#222222")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 760, 420, 52, 44, 18
_LEGEND = 150


class Result(NamedTuple):
    """What one run allocated when tasks that request a percentage of the GPUs had arrived, and its moves up to then."""

    mix: str
    policy: str
    seed: int
    requested: int
    allocated: float
    moves: int


class Series(NamedTuple):
    """A named sequence of points."""

    name: str
    points: Sequence[tuple[float, float]]


def write_report(results: Sequence[Result], published: Path, out: Path) -> None:
    """Write `table.md`, a figure for each mix, and one of all mixes, into a folder."""
    known = read_published(published) if published.is_file() else {}
    (out / "table.md").write_text("\n".join(table(results, known)) + "\n")
    mixes, policies = _names(results)
    for mix in mixes:
        lines = [Series(policy, _curve(results, mix, policy)) for policy in policies]
        title = f"GPUs allocated, {mix}"
        svg = chart([line for line in lines if len(line.points) > 1], title, "GPUs requested, %", range(70, 101, 5))
        (out / f"allocated-{mix}.svg").write_text(svg)


def read_published(file: Path) -> dict[tuple[str, str], float]:
    """Return the published means at 100 % requested, by mix and policy."""
    with file.open(newline="") as stream:
        return {
            (row["workload"], row["policy"]): float(row["allocated_gpu_percent_mean"])
            for row in csv.DictReader(stream)
            if int(row["arrived_gpu_percent"]) == _AT
        }


def table(results: Sequence[Result], published: Mapping[tuple[str, str], float]) -> list[str]:
    """Return a Markdown table of the means at 100 % requested, beside the published ones."""
    lines = [
        "| mix | policy | seeds | GPUs allocated | least, most | published | difference | tasks moved |",
        "|---|---|--:|--:|---|--:|--:|--:|",
    ]
    mixes, policies = _names(results)
    for mix in mixes:
        for policy in policies:
            runs = [one for one in results if (one.mix, one.policy, one.requested) == (mix, policy, _AT)]
            if not runs:
                continue
            values = [one.allocated for one in runs]
            reference = published.get((mix, policy))
            compared = ("", "") if reference is None else (f"{reference:.2f}", f"{fmean(values) - reference:+.2f}")
            moved = fmean(one.moves for one in runs)
            cells = (mix, policy, str(len(runs)), f"{fmean(values):.2f} %", f"{min(values):.2f}, {max(values):.2f}")
            lines.append(f"| {' | '.join((*cells, *compared, f'{moved:.0f}' if moved else ''))} |")
    return lines


def _names(results: Iterable[Result]) -> tuple[list[str], list[str]]:
    """Return the mixes and the policies of results, in the order in which they appear."""
    mixes, policies = {result.mix: None for result in results}, {result.policy: None for result in results}
    return list(mixes), list(policies)


def _curve(results: Sequence[Result], mix: str, policy: str) -> list[tuple[float, float]]:
    values: dict[int, list[float]] = {}
    for result in results:
        if (result.mix, result.policy) == (mix, policy):
            values.setdefault(result.requested, []).append(result.allocated)
    return [(requested, fmean(found)) for requested, found in sorted(values.items()) if requested >= 70]


def chart(lines: Sequence[Series], title: str, axis: str, ticks: range) -> str:
    """Return a line chart as SVG. The vertical axis ends at 100 %."""
    lowest = int(min((value for line in lines for _, value in line.points), default=0)) // 5 * 5
    right = _WIDTH - _LEGEND

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - ticks[0]) / (ticks[-1] - ticks[0])
        return _LEFT + across * (right - _LEFT), _HEIGHT - _BOTTOM - (y - lowest) / (100 - lowest) * (
            _HEIGHT - _BOTTOM - _TOP
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><title>{escape(title)}</title><rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>'
    ]
    for value in range(lowest, 101, 5):
        _, y = at(ticks[0], value)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value} %</text>')
    for value in ticks:
        x, y = at(value, lowest)
        parts.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{value}</text>')
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(axis)}</text>')
    for number, line in enumerate(lines):
        color = _COLORS[number % len(_COLORS)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in (at(*point) for point in line.points))
        parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        y = _TOP + 16 * number + 8
        parts.append(f'<path d="M{right + 12} {y - 4}h18" stroke="{color}" stroke-width="3"/>')
        parts.append(f'<text x="{right + 36}" y="{y}">{escape(line.name)}</text>')
    return "".join(parts) + "</svg>\n"
