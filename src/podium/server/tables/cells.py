"""Helpers for table cells.

The objects of some kinds are stored without validation, so nothing here relies on their structure. Source:
pkg/printers/internalversion/printers.go, apimachinery (pkg/util/duration, pkg/labels).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.api.nested import objects_at, value_at
from podium.api.selectors import LabelSelector, compile_label_selector
from podium.api.times import parse_time

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"

_SECOND = 10**9
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def text(raw: Any, *path: str, default: str = "") -> str:
    """Return the value at a path as text, or `default`."""
    found = value_at(raw, *path)
    return default if found is None or found == "" else shown(found)


def shown(found: Any) -> str:
    """Return a single value as kubectl shows it."""
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)


def number(raw: Any, *path: str) -> int:
    """Return the integer at a path, or 0."""
    found = value_at(raw, *path)
    return found if type(found) is int else 0


def texts(raw: Any, *path: str) -> list[str]:
    """Return the strings in the list at a path."""
    found = value_at(raw, *path)
    return [entry for entry in found if isinstance(entry, str)] if isinstance(found, list) else []


def count(raw: Any, *path: str) -> int:
    """Return the number of entries of the list or object at a path."""
    found = value_at(raw, *path)
    return len(found) if isinstance(found, list | dict) else 0


def name(raw: Raw) -> str:
    """Return the object's name."""
    return text(raw, "metadata", "name")


def age(raw: Raw, now: int) -> str:
    """Return the time since the object's creation."""
    return since(raw, now, "metadata", "creationTimestamp")


def since(raw: Any, now: int, *path: str) -> str:
    """Return the time since the timestamp at a path."""
    time = time_at(raw, *path)
    return UNKNOWN if time is None else human_duration(now - time)


def time_at(raw: Any, *path: str) -> int | None:
    """Return the timestamp at a path; None if it is absent or invalid."""
    found = value_at(raw, *path)
    if not isinstance(found, str) or not found:
        return None
    try:
        return parse_time(found)
    except ValueError:
        return None


def human_duration(ns: int) -> str:
    """Return a duration in at most two units (duration.HumanDuration)."""
    # Go truncates towards zero.
    seconds = ns // _SECOND if ns >= 0 else -(-ns // _SECOND)
    if seconds < 0:
        return "0s" if seconds == -1 else "<invalid>"
    minutes, hours = seconds // 60, seconds // 3_600
    if seconds < 120:
        return f"{seconds}s"
    if hours < 3:
        return _units(minutes, "m", seconds % 60, "s") if minutes < 10 else f"{minutes}m"
    if hours < 48:
        return _units(hours, "h", minutes % 60, "m") if hours < 8 else f"{hours}h"
    days = hours // 24
    if days < 2 * 365:
        return _units(days, "d", hours % 24, "h") if days < 8 else f"{days}d"
    years = days // 365
    return _units(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def labels(found: Any) -> str:
    """Return labels, or a selector that is a map, in text form (labels.FormatLabels)."""
    if not isinstance(found, dict) or not found:
        return NONE
    return ",".join(f"{key}={shown(entry)}" for key, entry in sorted(found.items()))


def label_selector(found: Any) -> str:
    """Return a LabelSelector in text form (meta/v1 FormatLabelSelector)."""
    if found is None:
        return NONE
    try:
        return str(compile_label_selector(msgspec.convert(found, LabelSelector))) or NONE
    except (InputError, msgspec.ValidationError):
        return "<error>"


def condition(raw: Raw, type_: str) -> str:
    """Return the status of a condition; "" if there is none of that type."""
    found = objects_at(raw, "status", "conditions")
    return next((text(one, "status") for one in found if one.get("type") == type_), "")


def access_modes(found: Iterable[str]) -> str:
    """Return the abbreviated access modes of a volume (GetAccessModesAsString)."""
    given = set(found)
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in given)


def some(found: list[str], most: int = 3, total: int | None = None) -> str:
    """Return the first few entries, and the number of further ones; `total` overrides the number of given entries."""
    total = len(found) if total is None else total
    listed = ",".join(found[:most])
    return f"{listed} + {total - most} more..." if total > most else listed


Cells = Sequence[Any]
Cell = Callable[[Raw, int], Any]
"""A function that returns the cell of an object at a time."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column (meta/v1 TableColumnDefinition) and its cells; a priority above 0 limits it to `-o wide`."""

    name: str
    description: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0

    def to_dict(self) -> Raw:
        return {name: getattr(self, name) for name in ("name", "type", "format", "description", "priority")}


@dataclass(frozen=True, slots=True)
class Printer:
    """The table printer of a kind: its columns, or for related cells a function that makes whole rows (`row`).

    `conditions` are those of the row: kubectl can hide completed rows.
    """

    columns: tuple[TableColumn, ...]
    row: Callable[[Raw, int], Cells] | None = None
    conditions: Callable[[Raw], list[Raw]] = lambda raw: []

    def cells(self, raw: Raw, now: int) -> Cells:
        """Return the cells of an object, one for each column."""
        return [column.cell(raw, now) for column in self.columns] if self.row is None else self.row(raw, now)


NAME = TableColumn(
    "Name", "The name of the object, unique for its kind and namespace.", lambda raw, _: name(raw), format="name"
)
AGE = TableColumn("Age", "The time since the object was created.", age)
