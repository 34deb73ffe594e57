"""What was recorded held against what was simulated, for people."""

from __future__ import annotations

from podium.api.times import format_duration
from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Cell, Name, Page, Part, counted
from podium.sim.recording.comparison import Comparison, PodPlace, Sums

_MOST_PODS = 20
_HEADINGS = ("", "bound", "preempted", "evicted", "mean wait", "95%", "longest")


def write_comparison(page: Page, comparison: Comparison) -> None:
    """Write both sums, and the pods that are on another node here than there."""
    page.title("Recorded and simulated", f"{counted(comparison.same, 'pod')} on the same node")
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in _HEADINGS]]
    rows += [_row("recorded", comparison.recorded), _row("simulated", comparison.simulated)]
    page.columns(rows, indent=2, right=range(1, len(_HEADINGS)))
    if not comparison.differences:
        return
    page.title("Elsewhere", f"{counted(len(comparison.differences), 'pod')}, with the wait for a node")
    others: list[list[Part]] = [
        [Name(difference.pod, PODS), *_place(difference.recorded), "→", *_place(difference.simulated)]
        for difference in comparison.differences[:_MOST_PODS]
    ]
    page.columns(others, indent=2)
    if len(comparison.differences) > _MOST_PODS:
        page.line(Cell(f"and {counted(len(comparison.differences) - _MOST_PODS, 'more pod')}", "dim"), indent=2)


def _row(name: str, sums: Sums) -> list[Part]:
    waits = sums.waiting or {}
    times = [_in_words(waits[key]) if key in waits else "" for key in ("mean", "p95", "max")]
    return [name, f"{sums.bindings:,}", f"{sums.preempted:,}", f"{sums.evicted:,}", *times]


def _place(place: PodPlace) -> tuple[Part, Part]:
    if place.node is None:
        return "no node", ""
    return Name(place.node, NODES), f"after {_in_words(place.wait or 0)}"


def _in_words(seconds: float) -> str:
    return format_duration(round(seconds * 1000) * 10**6)
