"""The tables of docs/scheduling-automata.md, for comparison with the queue and binding cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.docs.blocks import ROOT


def transitions_of_the_queue() -> Mapping[tuple[str, str], str]:
    """Return the transitions of the queue by the pod's place and the input."""
    head, _, *rows = _table("|  |")
    return {(place, row[0]): cell for row in rows for place, cell in zip(head[1:], row[1:], strict=True)}


def transitions_of_binding_cycles() -> Mapping[tuple[str, str], str]:
    """Return the transitions of binding cycles by stage and event."""
    _, _, *rows = _table("| what happens |")
    return {(stage, event): outcome for event, stages, outcome in rows for stage in stages.split(", ")}


def _table(beginning: str) -> Sequence[Sequence[str]]:
    """Return the cells of the only table whose first line begins like this."""
    lines = (ROOT / "docs/scheduling-automata.md").read_text(encoding="utf-8").splitlines()
    (begin,) = [place for place, line in enumerate(lines) if line.startswith(beginning)]
    return [
        [cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in lines[begin : lines.index("", begin)]
    ]
