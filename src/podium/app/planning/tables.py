"""The answer to a plan as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.api.errors import PodiumError
from podium.app.frames import Frame
from podium.app.frames.column import Kind, Value
from podium.app.frames.rows import flat, kinds
from podium.app.planning.answer import PlanAnswer
from podium.app.simulating import tables

_TABLE = "table"
_OWN = ("impact", "nodes", "findings")
# By name, that of the result's table.
_OF_THE_RUN = {name: name for name in ("events", "pods", "series", "workloads", "readiness")} | {"all_nodes": "nodes"}


def frame_of(answer: PlanAnswer, name: str) -> Frame:
    """The table of that name: see `PlanAnswer.frame`. Raises PodiumError for one that there is not."""
    name = name or ("impact" if answer.table is None else _TABLE)
    if name == _TABLE and answer.table is not None:
        headings = answer.table.headings
        columns: dict[str, Kind] = {
            heading: "int64" if heading in answer.table.numbers else "string" for heading in headings
        }
        return Frame.of_rows(name, [dict(zip(headings, row, strict=True)) for row in answer.table.rows], columns)
    if name in _OWN:
        entries = getattr(answer, name)
        return Frame.of_rows(name, [_row(entry.to_dict()) for entry in entries], _COLUMNS[name])
    if name in _OF_THE_RUN and answer.result is not None:
        return tables.frame_of(answer.result, _OF_THE_RUN[name])
    known = (*_OWN, *(_OF_THE_RUN if answer.result is not None else ()), *((_TABLE,) if answer.table else ()))
    raise PodiumError(f"the answer to {answer.question} has no table {name}; it has: {', '.join(known)}")


_COLUMNS: Mapping[str, Mapping[str, Kind]] = {
    "impact": {
        **kinds("workload", "readyBefore lowestReady readyAfter readyWithoutPlan wanted missing pending stuck"),
        **kinds(number="shortSeconds pendingSeconds"),
    },
    "nodes": kinds("node change", "podsBefore podsAfter"),
    "findings": kinds("code message subjects"),
}


def _row(shown: dict[str, Any]) -> dict[str, Value]:
    # Which budgets held a workload, and for how long, is in `to_dict`.
    shown = {**shown, "held": ", ".join(held["budget"] for held in shown["held"])} if "held" in shown else shown
    return flat(shown)
