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
The columns of DisruptionPolicies and PodGroups are Podium's own, and so are the rates of budgets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

import msgspec

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.server.tables.cell_functions import CELL_FUNCTIONS
from podium.server.tables.cells import AGE, NAME, Cell, Printer, TableColumn, completion, event_row, pod_row
from podium.server.tables.custom import custom_printer
from podium.store.api_resources import APIResource
from podium.store.errors import bad_request

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


def table_of(resource: APIResource, objects: Iterable[Raw], now: int, include_object: str = "") -> Raw:
    """Return the objects as a Table, without list metadata.

    `include_object` says which object data each row has: None, Metadata (as does "") or Object. Raises StoreError 400
    for any other value.
    """
    if include_object not in ("", "None", "Metadata", "Object"):
        raise bad_request(f"includeObject: {shown(include_object)} is not one of None, Metadata, Object")
    printer = PRINTERS.get((resource.group, resource.kind), _GENERIC)
    if resource.is_custom and printer is _GENERIC:
        printer = custom_printer(msgspec.json.encode(resource.columns.get(resource.api_version, ())))
    return {
        "kind": "Table",
        "apiVersion": _META,
        "metadata": {},
        "columnDefinitions": [column.to_dict() for column in printer.columns],
        "rows": [_row(printer, raw, now, include_object) for raw in objects],
    }


def _row(printer: Printer, raw: Raw, now: int, include_object: str) -> Raw:
    row: Raw = {"cells": list(printer.cells(raw, now))}
    conditions = printer.conditions(raw)
    if conditions:
        row["conditions"] = conditions
    if include_object == "Object":
        row["object"] = raw
    elif include_object != "None":
        metadata = raw.get("metadata", {})
        row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": metadata}
    return row
