"""Since when a condition holds, as the API has it."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.times import parse_time


def since(raw: Raw | None, condition: str) -> int | None:
    """Since when a condition of an object is true, in nanoseconds since 1970; None where it is not, or nobody says."""
    status = raw.get("status") if raw is not None else None
    found = status.get("conditions") if isinstance(status, dict) else None
    for entry in found if isinstance(found, list) else ():
        if isinstance(entry, dict) and entry.get("type") == condition and entry.get("status") == "True":
            return time_of(entry.get("lastTransitionTime"))
    return None


def time_of(text: object) -> int | None:
    """A time as the API writes it; None for what is none."""
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None
