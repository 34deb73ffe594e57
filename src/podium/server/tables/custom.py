"""How objects of custom kinds are shown: by the columns that their definition gives them (additionalPrinterColumns).

Source: apiextensions-apiserver (pkg/registry/customresource/tableconvertor).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from podium.api.meta import Raw
from podium.server.tables.cells import age, human_duration, name, shown, text, time_at
from podium.server.tables.column import AGE, NAME, Cells, Column, Printer
from podium.server.tables.json_path import found_at

_TYPES = ("string", "integer", "number", "boolean", "date")


def custom_printer(columns: Sequence[Raw]) -> Printer:
    """What shows a custom kind with such columns; the age alone for one that has none."""
    if not columns:
        return Printer((NAME, AGE), lambda raw, now: (name(raw), age(raw, now)))
    made = tuple(map(_column, columns))
    paths = [(column.type, text(given, "jsonPath")) for column, given in zip(made, columns, strict=True)]

    def cells(raw: Raw, now: int) -> Cells:
        return (name(raw), *(_cell(found_at(raw, path), type_, now) for type_, path in paths))

    return Printer((NAME, *made), cells)


def _column(given: Raw) -> Column:
    type_, priority = text(given, "type"), given.get("priority")
    return Column(
        text(given, "name"),
        text(given, "description") or f"What stands at {text(given, 'jsonPath')}.",
        type_ if type_ in _TYPES else "string",
        text(given, "format"),
        priority if type(priority) is int else 0,
    )


def _cell(found: list[Any], type_: str, now: int) -> Any:
    """What was found, as the column has it; None where it is nothing of that type."""
    if not found or found[0] is None:
        return None
    first = found[0]
    match type_:
        case "integer" | "number":
            is_number = isinstance(first, int | float) and not isinstance(first, bool)
            return (int(first) if type_ == "integer" else first) if is_number else None
        case "boolean":
            return first if isinstance(first, bool) else None
        case "date":
            time = time_at({"time": first}, "time")
            return "<invalid>" if time is None else human_duration(now - time)
    return " ".join(map(_written, found))


def _written(value: Any) -> str:
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else shown(value)
