"""Nodes grouped by what was said about them, as rows of a page."""

from __future__ import annotations

from collections.abc import Mapping

from podium.app.page import Cell, Page, Part, counted, listed
from podium.framework.status import Status

_MOST_NAMES = 8
_FITS = "fits"


def write_by_reason(page: Page, statuses: Mapping[str, Status]) -> None:
    """Write a row for each message: the number of nodes, the message, and their names; those that fit come first."""
    nodes: dict[str, list[str]] = {}
    for node, status in sorted(statuses.items()):
        nodes.setdefault(_FITS if status.is_success else status.message, []).append(node)
    order = sorted(nodes, key=lambda reason: (reason != _FITS, -len(nodes[reason]), reason))
    rows: list[tuple[Part, ...]] = [
        (
            counted(len(nodes[reason]), "node"),
            Cell(reason, "good" if reason == _FITS else ""),
            Cell(listed(nodes[reason], _MOST_NAMES), "dim"),
        )
        for reason in order
    ]
    page.columns(rows, indent=2, right=(0,))
