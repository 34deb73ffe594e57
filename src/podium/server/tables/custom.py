"""Tables of custom kinds, with the columns of their definitions (additionalPrinterColumns).

Source: apiextensions-apiserver (pkg/registry/customresource/tableconvertor).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from podium.api.meta import Raw
from podium.server.tables.cells import AGE, NAME, Printer, TableColumn, human_duration, shown, text, time_at

_TYPES = ("string", "integer", "number", "boolean", "date")


def custom_printer(columns: Sequence[Raw]) -> Printer:
    """Return the printer of a custom kind with such columns; without columns, only the age is shown."""
    return Printer((NAME, *map(_column, columns)) if columns else (NAME, AGE))


def _column(given: Raw) -> TableColumn:
    type_, priority, path = text(given, "type"), given.get("priority"), text(given, "jsonPath")
    type_ = type_ if type_ in _TYPES else "string"
    return TableColumn(
        text(given, "name"),
        text(given, "description") or f"The value at {path}.",
        lambda raw, now: _cell(found_at(raw, path), type_, now),
        type_,
        text(given, "format"),
        priority if type(priority) is int else 0,
    )


def _cell(found: list[Any], type_: str, now: int) -> Any:
    """Return the found values as a cell of the column's type; None if the type does not match."""
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
    return " ".join(
        msgspec.json.encode(value).decode() if isinstance(value, dict | list) else shown(value) for value in found
    )


_LONGEST = 1_000
_NAME = re.compile(r"\.((?:[^.\[\]\\]|\\.)+)")
_QUOTED = re.compile(r"""\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]""")
_INDEX = re.compile(r"\[(-?[0-9]{1,9})\]")
_SLICE = re.compile(r"\[(-?[0-9]{0,9}):(-?[0-9]{0,9})\]")
_ALL = re.compile(r"\[\*\]|\.\*")
_FILTER = re.compile(
    r"""\[\?\(\s*@((?:[^'"=!<>\s\]]|\[[0-9]+\])*)\s*(==|!=|<=|>=|<|>)\s*("[^"]*"|'[^']*'|-?[0-9.]{1,20}|true|false)\s*\)\]"""
)
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Step = Callable[[Any], list[Any]]


def found_at(raw: Any, path: str) -> list[Any]:
    """Return all values at a path; none for an invalid path."""
    steps = _steps(path)
    values = [] if steps is None else [raw]
    for step in steps or ():
        values = [found for value in values for found in step(value)]
    return values


@lru_cache(maxsize=4_096)
def _steps(path: str) -> tuple[Step, ...] | None:
    """Return the steps of a path; None for an invalid path."""
    path = path.removeprefix("{").removesuffix("}").removeprefix("$") if len(path) <= _LONGEST else "?"
    if path == ".":
        return ()
    steps = []
    position = 0
    while position < len(path):
        read = _step(path, position)
        if read is None:
            return None
        step, position = read
        steps.append(step)
    return tuple(steps)


def _step(path: str, position: int) -> tuple[Step, int] | None:
    """Return the step at a position, and the position after it; None if it is invalid."""
    for pattern, make in _READERS:
        match = pattern.match(path, position)
        step = make(match) if match is not None else None
        if match is not None and step is not None:
            return step, match.end()
    return None


def _named(match: re.Match[str]) -> Step:
    name = re.sub(r"\\(.)", r"\1", next(group for group in match.groups() if group is not None))
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _indexed(match: re.Match[str]) -> Step:
    index = int(match[1])
    return lambda value: [value[index]] if isinstance(value, list) and -len(value) <= index < len(value) else []


def _sliced(match: re.Match[str]) -> Step | None:
    if "-" in (match[1], match[2]):
        return None
    begin, end = (int(text) if text else None for text in match.groups())
    return lambda value: value[begin:end] if isinstance(value, list) else []


def _every(_match: re.Match[str]) -> Step:
    return lambda value: list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _filtered(match: re.Match[str]) -> Step | None:
    left, compare, right = match[1] or ".", _OPERATORS[match[2]], _literal(match[3])
    if right is None or _steps(left) is None:
        return None

    def is_kept(entry: Any) -> bool:
        return any(_is_so(found, compare, right) for found in found_at(entry, left))

    return lambda value: list(filter(is_kept, value)) if isinstance(value, list) else []


def _is_so(found: Any, compare: Callable[[Any, Any], bool], right: Any) -> bool:
    try:
        return compare(found, right)
    except TypeError:
        return False


def _literal(written: str) -> Any:
    if written[0] in "\"'":
        return written[1:-1]
    if written in ("true", "false"):
        return written == "true"
    try:
        return float(written)
    except ValueError:
        return None


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step | None]], ...] = (
    (_ALL, _every),
    (_NAME, _named),
    (_QUOTED, _named),
    (_INDEX, _indexed),
    (_SLICE, _sliced),
    (_FILTER, _filtered),
)
