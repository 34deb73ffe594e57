"""Tables of objects, with the columns of `kubectl get` (pkg/printers/internalversion/printers.go).

The columns of built-in kinds are in the text file `columns.txt`:

    [apps]
    ReplicaSet: Name
      Desired:integer = number .spec.replicas | The desired number of pods.
      Age Containers Images Selector

An API group (`core` is the one without a name), and its kinds with their first columns. A line without `=` lists
columns that kinds share. Age comes last, unless it is listed before or the first line ends with `-Age`. Any other line
is a column: its title, `+` if only `-o wide` shows it, and `:` with a type or format other than plain text; then one of
`CELL_FUNCTIONS` with arguments, of which those that begin with a dot are paths; then its description. Columns without a
function are those of kinds with a function for whole rows (`_ROWS`).
The columns of DisruptionPolicies and PodGroups are Podium's own, and so are the rates of budgets. Custom kinds have the
columns of their definitions (additionalPrinterColumns; apiextensions-apiserver, pkg/registry/customresource/
tableconvertor).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

from podium.api import times
from podium.api.meta import Raw, list_at
from podium.server.tables.cell_functions import CELL_FUNCTIONS
from podium.server.tables.cells import (
    AGE,
    NAME,
    Cell,
    Printer,
    TableColumn,
    completion,
    event_row,
    pod_row,
    shown,
    text,
)
from podium.store.api_resources import APIResource

_COLUMNS = resources.files("podium.server.tables").joinpath("columns.txt").read_text(encoding="utf-8")

_COLUMN = re.compile(r"  ([^=+:]+)(\+?):?(\w*) =([^|]*)\| (.+)")


def _columns(line: str, shared: Mapping[str, TableColumn]) -> list[TableColumn]:
    """Return the columns of a line of the notation."""
    found = _COLUMN.fullmatch(line)
    if found is None:
        return [shared[name] for name in line.split()]
    title, is_wide, form, cell, description = found.groups()
    type_, format_ = (form, "") if form in ("boolean", "integer") else ("string", form)
    return [TableColumn(title, description, _cell(*cell.split()), type_, format_, 1 if is_wide else 0)]


def _cell(function: str = "", *arguments: str) -> Cell:
    """Return the cell function of a name with its arguments."""
    given = [tuple(argument[1:].split(".")) if argument[0] == "." else argument for argument in arguments]
    call = CELL_FUNCTIONS[function]
    return lambda raw, now: call(raw, now, *given)


_SHARED_COLUMNS = """
  Containers+ = joined .spec.template.spec.containers name | The names of the containers in the template.
  Images+ = joined .spec.template.spec.containers image | The images of the containers in the template.
  Selector+ = selector .spec.selector | The selector of the object's pods.
"""
_SHARED = {column.name: column for line in _SHARED_COLUMNS.strip("\n").splitlines() for column in _columns(line, {})}
_SHARED |= {"Name": NAME, "Age": AGE}
_ROWS: Mapping[str, Mapping[str, Any]] = {
    "Event": {"row": event_row},
    "Pod": {"row": pod_row, "conditions": completion},
}


def _printers() -> Mapping[tuple[str, str], Printer]:
    printers: dict[tuple[str, str], Printer] = {}
    for section in _COLUMNS.replace("\n    ", " ").strip().removeprefix("[").split("\n["):
        group, _, kinds = section.partition("]\n")
        for written in re.split(r"\n(?! )", kinds):
            head, *lines = written.splitlines()
            names, _, first = head.partition(":")
            listed = [column for line in (first.removesuffix("-Age"), *lines) for column in _columns(line, _SHARED)]
            if AGE not in listed and not first.endswith("-Age"):
                listed.append(AGE)
            for name in names.split(", "):
                other_group, _, kind = name.rpartition("/")
                of = other_group or group.removeprefix("core"), kind
                printers[of] = Printer(tuple(listed), **_ROWS.get(kind, {}))
    return printers


PRINTERS = _printers()
"""The table printers of the built-in kinds, by group and kind."""

_META = "meta.k8s.io/v1"
_CREATED = TableColumn("Created At", "The time of creation.", _cell("text", ".metadata.creationTimestamp"), "date")
_GENERIC = Printer((NAME, _CREATED))
BUDGET = TableColumn("Budget", "The disruption budgets that select the pod.", _cell(), priority=1)
"""The last column of pods, whose cells depend on other objects."""


def table_of(resource: APIResource, objects: Iterable[Raw], now: int, include: str = "", version: str = _META) -> Raw:
    """Return the objects as a Table of that version, without list metadata.

    `include` says which object data each row has: None, Metadata (as does "") or Object.
    """
    printer = PRINTERS.get((resource.group, resource.kind), _GENERIC)
    if resource.is_custom and printer is _GENERIC:
        printer = custom_printer(msgspec.json.encode(resource.columns.get(resource.api_version, ())))
    return {
        "kind": "Table",
        "apiVersion": version,
        "metadata": {},
        "columnDefinitions": [column.to_dict() for column in printer.columns],
        "rows": [_row(printer, raw, now, include, version) for raw in objects],
    }


def _row(printer: Printer, raw: Raw, now: int, include: str, version: str) -> Raw:
    row: Raw = {"cells": list(printer.cells(raw, now))}
    conditions = printer.conditions(raw)
    if conditions:
        row["conditions"] = conditions
    if include == "Object":
        row["object"] = raw
    elif include != "None":
        metadata = raw.get("metadata", {})
        row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": metadata}
    return row


_TYPES = ("string", "integer", "number", "boolean", "date")


@lru_cache(maxsize=1_024)
def custom_printer(columns: bytes) -> Printer:
    """Return the printer of a custom kind with such columns, given as JSON; without columns, only the age is shown."""
    given = msgspec.json.decode(columns)
    return Printer((NAME, *map(_custom_column, given)) if given else (NAME, AGE))


def _custom_column(given: Raw) -> TableColumn:
    type_, priority, path = text(given, "type"), given.get("priority"), text(given, "jsonPath")
    type_ = type_ if type_ in _TYPES else "string"
    return TableColumn(
        text(given, "name"),
        text(given, "description") or f"The value at {path}.",
        lambda raw, now: _custom_cell(found_at(raw, path), type_, now),
        type_,
        text(given, "format"),
        priority if type(priority) is int else 0,
    )


def _custom_cell(found: list[Any], type_: str, now: int) -> Any:
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
            time = times.time_of(first)
            return "<invalid>" if time is None else times.human_duration(now - time)
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
