"""The entries of `metadata.managedFields`: managers with the fields that they own.

Source: apimachinery (pkg/util/managedfields/internal: managedfields.go, capmanagers.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

from podium.api.meta import Raw
from podium.api.ownership.field_sets import FieldSet, is_set, union
from podium.api.times import format_time

Operation = Literal["Apply", "Update"]


class FieldManager(NamedTuple):
    """A field manager: a program, its operation, and the subresource that it writes.

    A manager that applies is the same in all versions, so its `api_version` is "".
    """

    name: str
    operation: Operation
    api_version: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class FieldsEntry:
    """The fields of a manager, their API version, and the time since when it owns exactly these.

    `raw` is the entry's serialized form, if known.
    """

    fields: FieldSet
    api_version: str
    time: str
    raw: Raw | None = field(default=None, compare=False)


Entries = Mapping[FieldManager, FieldsEntry]

FIELD = "managedFields"
"""The metadata field that holds the entries."""

ANCIENT = "ancient-changes"
"""The manager that owns the fields of entries beyond the maximum number."""

_MOST_UPDATERS = 10
_KEPT_SETS = 8_192
_KEPT_LISTS = 4_096
# Entries by the identity of their list, which is kept alive with them.
_read: dict[int, tuple[list[Raw], Entries]] = {}
# FieldsV1 has sorted keys.
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


def read_entries(listed: Any) -> dict[FieldManager, FieldsEntry] | None:
    """Return the entries of an object; None if they cannot be read."""
    if not isinstance(listed, list):
        return {} if listed is None else None
    found: dict[FieldManager, FieldsEntry] = {}
    for raw in listed:
        if not isinstance(raw, dict) or raw.get("operation") not in ("Apply", "Update"):
            return None
        fields, version = raw.get("fieldsV1", {}), raw.get("apiVersion", "")
        if raw.get("fieldsType") != "FieldsV1" or not is_set(fields) or not isinstance(version, str):
            return None
        operation: Operation = raw["operation"]
        key = "" if operation == "Apply" else version
        manager = FieldManager(str(raw.get("manager", "")), operation, key, str(raw.get("subresource", "")))
        found[manager] = FieldsEntry(fields, version, str(raw.get("time", "")), raw)
    return found


def entries_of(raw: Raw) -> Entries:
    """Return the entries of a stored object; unreadable entries own nothing.

    The result is cached for the next write: most objects that are written are written again.
    """
    listed = raw["metadata"].get(FIELD)
    if not listed:
        return {}
    known = _read.get(id(listed))
    if known is None or known[0] is not listed:
        known = _remembered(listed, read_entries(listed) or {})
    return known[1]


def _remembered(listed: list[Raw], entries: Entries) -> tuple[list[Raw], Entries]:
    if len(_read) >= _KEPT_LISTS:
        del _read[next(iter(_read))]
    _read[id(listed)] = listed, entries
    return listed, entries


def written(entries: Entries) -> list[Raw]:
    """Return the entries as objects carry them: appliers first, then by time and name."""
    return [_written(manager, entry) for manager, entry in sorted(entries.items(), key=_place)]


def _written(manager: FieldManager, entry: FieldsEntry) -> Raw:
    if entry.raw is not None:
        return entry.raw
    raw: Raw = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": entry.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": shared(entry.fields),
    }
    if manager.subresource:
        raw["subresource"] = manager.subresource
    return raw


def _place(item: tuple[FieldManager, FieldsEntry]) -> tuple[str, ...]:
    manager, entry = item
    return manager.operation, entry.time, manager.name, manager.api_version, manager.subresource


def _capped(entries: Entries) -> Entries:
    """Return the entries with the number of updaters capped: the oldest are merged."""
    updaters = sorted((item for item in entries.items() if item[0].operation == "Update"), key=_place)
    excess = len(updaters) - _MOST_UPDATERS
    if excess <= 0:
        return entries
    found = dict(entries)
    for manager, entry in updaters[: excess + 1]:
        del found[manager]
        ancient = FieldManager(ANCIENT, "Update", entry.api_version)
        before = found.get(ancient)
        fields = entry.fields if before is None else union(before.fields, entry.fields)
        found[ancient] = FieldsEntry(fields, entry.api_version, entry.time)
    return found


def entry_of(fields: FieldSet, api_version: str, now: int) -> FieldsEntry:
    """Return an entry for a manager that owns these fields from now on."""
    return FieldsEntry(fields, api_version, format_time(now))


def shared(fields: FieldSet) -> FieldSet:
    """Return the interned instance of a field set."""
    return _shared(_ENCODER.encode(fields))


@lru_cache(maxsize=_KEPT_SETS)
def _shared(packed: bytes) -> FieldSet:
    found: FieldSet = msgspec.msgpack.decode(packed)
    return found


def with_entries(raw: Raw, entries: Entries) -> Raw:
    """Return the object with these entries, or without the field if there are none."""
    metadata = {name: value for name, value in raw["metadata"].items() if name != FIELD}
    if entries:
        capped = _capped(entries)
        metadata[FIELD] = written(capped)
        _remembered(metadata[FIELD], capped)
    return {**raw, "metadata": metadata}


def of_managers(entries: Entries) -> FieldSet:
    """Return the union of the fields of all managers."""
    found: FieldSet = {}
    for entry in entries.values():
        found = union(found, entry.fields)
    return found
