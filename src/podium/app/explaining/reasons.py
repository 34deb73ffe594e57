"""Nodes grouped by what was said about them, as rows of a page."""

from __future__ import annotations

from collections.abc import Mapping

from podium.app.console.page import Cell, Page, Part, counted, fitted
from podium.framework.status import Status

_INDENT = 2
_FITS = "fits"


def write_by_reason(page: Page, statuses: Mapping[str, Status]) -> None:
    """Write a row for each message: the number of nodes, the message, and their names; those that fit come first."""
    nodes: dict[str, list[str]] = {}
    for node, status in sorted(statuses.items()):
        nodes.setdefault(_FITS if status.is_success else status.message, []).append(node)
    order = sorted(nodes, key=lambda reason: (reason != _FITS, -len(nodes[reason]), reason))
    # What is left of a line for names: behind the counts and those messages that leave them any room.
    taken = _INDENT + max((len(_count(names)) + 2 for names in nodes.values()), default=0)
    widest = max((len(reason) + 2 for reason in nodes if len(reason) <= page.width // 2), default=0)
    rows: list[tuple[Part, ...]] = []
    for reason in order:
        names = nodes[reason]
        if len(reason) > page.width // 2:
            rows.append((_count(names), f"{reason}: {fitted(names, page.width // 2)}"))
        else:
            style = "good" if reason == _FITS else ""
            rows.append((_count(names), Cell(reason, style), Cell(fitted(names, page.width - taken - widest), "dim")))
    page.columns(rows, indent=_INDENT, right=(0,))


def _count(nodes: list[str]) -> str:
    return counted(len(nodes), "node")
