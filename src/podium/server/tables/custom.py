"""Tables of custom kinds, with the columns of their definitions (additionalPrinterColumns).

Source: apiextensions-apiserver (pkg/registry/customresource/tableconvertor).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from podium.api.meta import Raw, list_at
from podium.server.tables.cells import AGE, NAME, Printer, TableColumn, human_duration, shown, text, time_at

_TYPES = ("string", "integer", "number", "boolean", "date")


@lru_cache(maxsize=1_024)
def custom_printer(columns: bytes) -> Printer:
    """Return the printer of a custom kind with such columns, given as JSON; without columns, only the age is shown."""
    given = msgspec.json.decode(columns)
    return Printer((NAME, *map(_column, given)) if given else (NAME, AGE))


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
_STEP = re.compile(
    r"""
    (?P<every> \[\*\] | \.\* )
    | \. (?P<name> (?: [^.\[\]\\] | \\. )+ )
    | \[ ' (?P<single> (?: [^'\\] | \\. )* ) ' \]
    | \[ " (?P<double> (?: [^"\\] | \\. )* ) " \]
    | \[ (?P<index> -?[0-9]{1,9} ) \]
    | \[ (?P<begin> (?: -?[0-9]{1,9} )? ) : (?P<end> (?: -?[0-9]{1,9} )? ) \]
    | \[\?\( \s* @ (?P<left> (?: [^'"=!<>\s\]] | \[[0-9]+\] )* ) \s* (?P<compare> == | != | <= | >= | < | > ) \s*
      (?P<right> "[^"]*" | '[^']*' | -?[0-9.]{1,20} | true | false ) \s* \)\]
    """,
    re.VERBOSE,
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
    steps: list[Step] = []
    position = 0 if path != "." else 1
    while position < len(path):
        match = _STEP.match(path, position)
        step = None if match is None else _step(match)
        if match is None or step is None:
            return None
        steps.append(step)
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step | None:
    """Return the step of a part of a path; None if it is invalid."""
    part = match.groupdict()
    if part["every"]:
        return lambda value: list(value.values()) if isinstance(value, dict) else list_at(value)
    if part["index"]:
        index = int(part["index"])
        return lambda value: [value[index]] if -len(list_at(value)) <= index < len(list_at(value)) else []
    if part["begin"] is not None:
        begin, end = (int(part[name]) if part[name] else None for name in ("begin", "end"))
        return lambda value: list_at(value)[begin:end]
    if part["compare"]:
        return _filter(part["left"] or ".", _OPERATORS[part["compare"]], _literal(part["right"]))
    name = re.sub(r"\\(.)", r"\1", part["name"] or part["single"] or part["double"] or "")
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _filter(left: str, compare: Callable[[Any, Any], bool], right: Any) -> Step | None:
    if right is None or _steps(left) is None:
        return None

    def holds(found: Any) -> bool:
        try:
            return compare(found, right)
        except TypeError:
            return False

    return lambda value: [entry for entry in list_at(value) if any(map(holds, found_at(entry, left)))]


def _literal(written: str) -> Any:
    if written[0] in "\"'":
        return written[1:-1]
    if written in ("true", "false"):
        return written == "true"
    try:
        return float(written)
    except ValueError:
        return None
