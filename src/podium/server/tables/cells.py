"""What cells of many tables are made of.

The objects of some kinds are stored as they come, so that nothing here counts on the shape of what it looks at. Source:
pkg/printers/internalversion/printers.go, apimachinery (pkg/util/duration, pkg/labels).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.api.selection import LabelSelector
from podium.api.selectors import compile_label_selector
from podium.api.times import parse_time

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"

_SECOND = 10**9
_MINUTE_SECONDS = 60
_HOUR_SECONDS = 3_600
_YEAR_DAYS = 365
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def value(raw: Any, *path: str) -> Any:
    """What stands at a path; None where nothing does."""
    for name in path:
        raw = raw.get(name) if isinstance(raw, dict) else None
    return raw


def text(raw: Any, *path: str, default: str = "") -> str:
    """What stands at a path, as text; `default` for nothing."""
    found = value(raw, *path)
    return default if found is None or found == "" else shown(found)


def shown(found: Any) -> str:
    """A single value as kubectl shows it."""
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)


def number(raw: Any, *path: str) -> int:
    """The whole number at a path; 0 for nothing."""
    found = value(raw, *path)
    return found if type(found) is int else 0


def entries(raw: Any, *path: str) -> list[Raw]:
    """The objects in the list at a path."""
    found = value(raw, *path)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def texts(raw: Any, *path: str) -> list[str]:
    """The texts in the list at a path."""
    found = value(raw, *path)
    return [entry for entry in found if isinstance(entry, str)] if isinstance(found, list) else []


def count(raw: Any, *path: str) -> int:
    """How many entries the list or the object at a path has."""
    found = value(raw, *path)
    return len(found) if isinstance(found, list | dict) else 0


def name(raw: Raw) -> str:
    """The object's name."""
    return text(raw, "metadata", "name")


def age(raw: Raw, now: int) -> str:
    """How long ago the object was created."""
    return since(raw, now, "metadata", "creationTimestamp")


def since(raw: Any, now: int, *path: str) -> str:
    """How long ago the time at a path was."""
    time = time_at(raw, *path)
    return UNKNOWN if time is None else human_duration(now - time)


def time_at(raw: Any, *path: str) -> int | None:
    """The time at a path; None for nothing, and for what is no time."""
    found = value(raw, *path)
    if not isinstance(found, str) or not found:
        return None
    try:
        return parse_time(found)
    except ValueError:
        return None


def human_duration(ns: int) -> str:
    """A duration in about two units (duration.HumanDuration)."""
    # Go cuts off towards zero.
    seconds = ns // _SECOND if ns >= 0 else -(-ns // _SECOND)
    if seconds < 0:
        return "0s" if seconds == -1 else "<invalid>"
    minutes, hours = seconds // _MINUTE_SECONDS, seconds // _HOUR_SECONDS
    if seconds < 2 * _MINUTE_SECONDS:
        return f"{seconds}s"
    if hours < 3:
        return _units(minutes, "m", seconds % 60, "s") if minutes < 10 else f"{minutes}m"
    if hours < 48:
        return _units(hours, "h", minutes % 60, "m") if hours < 8 else f"{hours}h"
    days = hours // 24
    if days < 2 * _YEAR_DAYS:
        return _units(days, "d", hours % 24, "h") if days < 8 else f"{days}d"
    years = days // _YEAR_DAYS
    return _units(years, "y", days % _YEAR_DAYS, "d") if years < 8 else f"{years}y"


def _units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def labels(found: Any) -> str:
    """Labels, or a selector that is a map, as people write them (labels.FormatLabels)."""
    if not isinstance(found, dict) or not found:
        return NONE
    return ",".join(f"{key}={shown(entry)}" for key, entry in sorted(found.items()))


def label_selector(found: Any) -> str:
    """A LabelSelector as people write it (meta/v1 FormatLabelSelector)."""
    if found is None:
        return NONE
    try:
        return str(compile_label_selector(msgspec.convert(found, LabelSelector))) or NONE
    except (InputError, msgspec.ValidationError):
        return "<error>"


def containers(pod_spec: Any) -> tuple[str, str]:
    """The names and the images of a template's containers."""
    found = entries(pod_spec, "containers")
    return ",".join(text(one, "name") for one in found), ",".join(text(one, "image") for one in found)


def condition(raw: Raw, type_: str) -> str:
    """The status of a condition; "" where there is none of that type."""
    found = entries(raw, "status", "conditions")
    return next((text(one, "status") for one in found if one.get("type") == type_), "")


def access_modes(found: Iterable[str]) -> str:
    """The access modes of a volume, in short (GetAccessModesAsString)."""
    given = set(found)
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in given)


def some(found: list[str], most: int = 3, total: int | None = None) -> str:
    """The first few, and how many more there are; `total` where that is not the number of those given."""
    total = len(found) if total is None else total
    listed = ",".join(found[:most])
    return f"{listed} + {total - most} more..." if total > most else listed
