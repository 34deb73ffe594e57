"""The result of a simulation as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from podium.api.errors import PodiumError
from podium.app.frames import Frame
from podium.app.frames.column import Kind
from podium.app.frames.rows import flat, kinds
from podium.sim.results.result import Result

_EVENT = {
    **kinds(number="time"),
    **kinds("reason pod node by message", "count"),
    **kinds(number="lastTime"),
}
_POD = {
    **kinds("pod uid workload", "priority"),
    **kinds("phase state node nominatedNode", number="createdAt scheduledAt startedAt endedAt"),
    **kinds("disruption evictedBy"),
}
_NODE = kinds("node marks", "podsBefore pods", "addedAt goneAt")
_SUMS = {**kinds(number="time"), **kinds(whole="nodes ready pending")}
_WORKLOAD = kinds(
    "workload", "wantedBefore wanted readyBefore lowestReady ready pending", "shortSeconds pendingSeconds"
)
_READINESS = {**kinds("workload", number="time"), **kinds(whole="ready wanted")}


def frame_of(result: Result, name: str) -> Frame:
    """The table of that name: see `SimulationResult.frame`. Raises PodiumError for one that there is not."""
    if name not in _TABLES:
        raise PodiumError(f"a simulation has no table {name}; it has: {', '.join(_TABLES)}")
    columns, rows = _TABLES[name]
    return Frame.of_rows(name, [flat(row) for row in rows(result)], columns)


def _workload(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name != "series"}


_TABLES: dict[str, tuple[Mapping[str, Kind], Callable[[Result], Iterable[dict[str, Any]]]]] = {
    "events": (
        _EVENT,
        lambda result: (event.to_dict() for event in result.events),
    ),
    "pods": (_POD, lambda result: result.pods),
    "nodes": (_NODE, lambda result: (node.to_dict() for node in result.nodes)),
    "series": (_SUMS, lambda result: result.measures.to_dict()["series"]),
    "workloads": (_WORKLOAD, lambda result: map(_workload, result.measures.to_dict()["workloads"])),
    "readiness": (
        _READINESS,
        lambda result: (
            {"workload": workload["workload"], **point}
            for workload in result.measures.to_dict()["workloads"]
            for point in workload["series"]
        ),
    ),
}
