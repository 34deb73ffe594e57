"""The sums of a run as tables: who waited how long, what was requested, drains, workloads that are short of pods."""

from __future__ import annotations

from podium.api.errors import escape
from podium.api.times import format_duration
from podium.app.reporting.picture import Table
from podium.sim.results.result import Result

_LONGEST = 2_000
_TIMES = ("mean", "p50", "p95", "max")


def summary_tables(result: Result) -> list[Table]:
    """The tables that there is something to put into."""
    found = (_waits(result), _requested(result), _drains(result), _short(result), _recorded(result))
    return [table for table in found if table.rows]


def _waits(result: Result) -> Table:
    rows: list[list[str | int | float | None]] = [
        [waits["priority"], waits["count"], *(_duration(waits[name]) for name in _TIMES)]
        for waits in result.summary["waiting"]
    ]
    headings = ["priority", "pods", "mean", "median", "95%", "longest"]
    return Table("Waits", headings, rows, note="for a node, of the pods that got one")


def _requested(result: Result) -> Table:
    rows: list[list[str | int | float | None]] = [
        [name, f"{shares['average']:.1%}", f"{shares['final']:.1%}"] for name, shares in result.summary["use"].items()
    ]
    return Table("Requested", ["", "on average", "at the end"], rows, note="of what the nodes offer")


def _drains(result: Result) -> Table:
    rows: list[list[str | int | float | None]] = [
        [drain["node"], drain["state"], sum(pod["state"] == "gone" for pod in drain["pods"]), _text(drain["message"])]
        for drain in result.summary["drains"]
    ]
    subjects = [f"node {drain['node']}" for drain in result.summary["drains"]]
    return Table("Drains", ["node", "state", "gone", ""], rows, subjects=subjects)


def _short(result: Result) -> Table:
    rows: list[list[str | int | float | None]] = [
        [_text(short["workload"]), short["wants"], short["has"], _text(short["reason"])]
        for short in result.summary["short"]
    ]
    return Table("Short of pods", ["workload", "wants", "has", "why"], rows)


def _recorded(result: Result) -> Table:
    """What was recorded held against what was simulated."""
    rows: list[list[str | int | float | None]] = []
    if result.recorded is not None:
        pairs = (("recorded", result.recorded.recorded), ("simulated", result.recorded.simulated))
        rows = [[name, sums.bindings, sums.preempted, sums.evicted] for name, sums in pairs]
    same = "" if result.recorded is None else f"{result.recorded.same:,} pods on the same node"
    return Table("Recorded and simulated", ["", "bound", "preempted", "evicted"], rows, note=same)


def _text(text: str | None) -> str:
    return escape(text or "", _LONGEST)


def _duration(seconds: float) -> str:
    return format_duration(round(seconds * 10**9))
