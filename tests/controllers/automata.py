"""The tables of docs/scheduling-automata.md, for comparison with the queue and binding cycles."""

from __future__ import annotations

from collections.abc import Mapping

from tests.docs.blocks import ROOT


def transitions(number: int) -> Mapping[tuple[str, str], str]:
    """Return the cells of a table of transitions by column and row: 0 is the queue's, 1 that of binding cycles."""
    lines = (ROOT / "docs/scheduling-automata.md").read_text(encoding="utf-8").splitlines()
    begin = [place for place, line in enumerate(lines) if line.startswith("|  |")][number]
    end = lines.index("", begin)
    head, _, *rows = ([cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in lines[begin:end])
    return {(column, row[0]): cell for row in rows for column, cell in zip(head[1:], row[1:], strict=True)}
