"""The tables of docs/scheduling-automata.md, for comparison with the queue and binding cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.docs.blocks import ROOT


def transitions_of_the_queue() -> Mapping[tuple[str, str], str]:
    """Return what inputs do to pods, by the pod's place and the input; elsewhere the pod stays."""
    return _transitions("| input |")


def transitions_of_binding_cycles() -> Mapping[tuple[str, str], str]:
    """Return the transitions of binding cycles, by stage and event."""
    return _transitions("| what happens |")


def _transitions(beginning: str) -> Mapping[tuple[str, str], str]:
    """Return the outcomes in a table, by place and event; each row has an event, places and the outcome."""
    _, _, *rows = _table(beginning)
    return {(place, event): outcome for event, places, outcome in rows for place in places.split(", ")}


def _table(beginning: str) -> Sequence[Sequence[str]]:
    """Return the cells of the only table whose first line begins like this."""
    lines = (ROOT / "docs/scheduling-automata.md").read_text(encoding="utf-8").splitlines()
    (begin,) = [place for place, line in enumerate(lines) if line.startswith(beginning)]
    return [
        [cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in lines[begin : lines.index("", begin)]
    ]
