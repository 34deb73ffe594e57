"""Objects as a Table (meta/v1): the columns of their kind, and a row for each.

Source: apiserver (pkg/endpoints/handlers/response.go), apiserver (pkg/registry/rest/table.go) for kinds that have no
columns of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.server.tables import contents, devices, events, network, nodes, pods, policies, storage, workloads
from podium.server.tables.cells import name, text
from podium.server.tables.column import NAME, Cells, Column, Printer
from podium.server.tables.custom import custom_printer
from podium.store.api_resource import APIResource
from podium.store.errors import bad_request

_META = "meta.k8s.io/v1"
_SUBJECTS = (contents, devices, events, network, nodes, pods, policies, storage, workloads)
PRINTERS: Mapping[tuple[str, str], Printer] = {
    of: printer for subject in _SUBJECTS for of, printer in subject.PRINTERS.items()
}
"""How objects of the built-in kinds are shown, by group and kind."""

_CREATED = Column("Created At", "When the object was created.", "date")


def _plain(raw: Raw, now: int) -> Cells:
    return name(raw), text(raw, "metadata", "creationTimestamp")


_GENERIC = Printer((NAME, _CREATED), _plain)


def table_of(resource: APIResource, objects: Iterable[Raw], now: int, include_object: str = "") -> Raw:
    """The objects as a Table, without the metadata of their list.

    `include_object` says what comes with each row: None, Metadata (as "" does) or Object. Raises StoreError 400 for
    anything else.
    """
    if include_object not in ("", "None", "Metadata", "Object"):
        raise bad_request(f"includeObject: {shown(include_object)} is not one of None, Metadata, Object")
    printer = printer_of(resource)
    return {
        "kind": "Table",
        "apiVersion": _META,
        "metadata": {},
        "columnDefinitions": [column.to_dict() for column in printer.columns],
        "rows": [_row(printer, raw, now, include_object) for raw in objects],
    }


def printer_of(resource: APIResource) -> Printer:
    """How objects of a kind are shown."""
    printer = PRINTERS.get((resource.group, resource.kind))
    if printer is not None:
        return printer
    return _custom(_columns(resource)) if resource.is_custom else _GENERIC


def _columns(resource: APIResource) -> bytes:
    """The columns that a custom kind's definition gives it, as JSON."""
    return msgspec.json.encode(resource.columns.get(resource.api_version, ()))


@lru_cache(maxsize=1_024)
def _custom(columns: bytes) -> Printer:
    return custom_printer(msgspec.json.decode(columns))


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
