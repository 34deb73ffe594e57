"""From what JSON shows to rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.app.frames.column import Kind, Value


def kinds(text: str = "", whole: str = "", number: str = "") -> dict[str, Kind]:
    """The kinds of columns by their names, which stand with blanks between them: text, whole numbers, and others."""
    found: dict[str, Kind] = dict.fromkeys(text.split(), "string")
    return found | dict.fromkeys(whole.split(), "int64") | dict.fromkeys(number.split(), "float64")


def flat(shown: Mapping[str, Any], parent: str = "") -> dict[str, Value]:
    """The values by their path, with dots between the names; a list is its values with commas between them."""
    row: dict[str, Value] = {}
    for name, value in shown.items():
        path = f"{parent}{name}"
        if isinstance(value, Mapping):
            row |= flat(value, f"{path}.")
        elif isinstance(value, list | tuple):
            row[path] = ", ".join(map(str, value))
        else:
            row[path] = value
    return row
