"""An explanation as a table."""

from __future__ import annotations

from podium.api.errors import PodiumError
from podium.app.explaining.explanation import Explanation
from podium.app.frames import Frame
from podium.app.frames.column import Value
from podium.app.frames.rows import kinds

_COLUMNS = kinds("node status plugin reasons", "total")


def frame_of(explanation: Explanation, name: str) -> Frame:
    """The table of that name: see `Explanation.frame`. Raises PodiumError for one that there is not."""
    if name != "nodes":
        raise PodiumError(f"an explanation has no table {name}; it has: nodes")
    return Frame.of_rows("nodes", [_row(explanation, node) for node in explanation.nodes], _COLUMNS)


def _row(explanation: Explanation, node: str) -> dict[str, Value]:
    status = explanation.nodes[node]
    row: dict[str, Value] = {
        "node": node,
        "status": status.code.value,
        "plugin": status.plugin or None,
        "reasons": ", ".join(status.reasons) or None,
        "total": explanation.totals.get(node),
    }
    row |= {f"score.{plugin}": score for plugin, score in explanation.scores.get(node, {}).items()}
    candidate = None if explanation.plan is None else explanation.plan.candidates.get(node)
    if candidate is not None:
        row |= {"victims": len(candidate.victims), "pdbViolations": candidate.budget_violations}
    return row
