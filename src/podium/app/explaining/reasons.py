"""Nodes grouped by what was said about them, as rows of a page."""

from __future__ import annotations

from collections.abc import Mapping

from podium.app.console.cells import NODES
from podium.app.console.page import Cell, Page, Part, counted, names_of
from podium.framework.status import Status

_INDENT = 2
_FITS = "fits"


def write_by_reason(page: Page, statuses: Mapping[str, Status]) -> None:
    """Write a row for each message: the number of nodes, the message, and their names; those that fit come first."""
    nodes: dict[str, list[str]] = {}
    for node, status in sorted(statuses.items()):
        nodes.setdefault(_FITS if status.is_success else status.message, []).append(node)
    order = sorted(nodes, key=lambda reason: (reason != _FITS, -len(nodes[reason]), reason))
    rows: list[list[Part]] = [
        [
            counted(len(nodes[reason]), "node"),
            Cell(reason, "good" if reason == _FITS else ""),
            names_of(nodes[reason], NODES, "dim"),
        ]
        for reason in order
    ]
    page.columns(rows, indent=_INDENT, right=(0,))
