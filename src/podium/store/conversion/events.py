"""Events as events.k8s.io/v1 calls their fields, and as core/v1 does (pkg/apis/events/v1)."""

from __future__ import annotations

from podium.api.meta import Raw

_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_CORE_NAMES = {other: name for name, other in _NAMES.items()}
_SELECTED = (("regarding.", "involvedObject."), ("reportingController", "reportingComponent"))


def to_events_group(raw: Raw) -> Raw:
    """An Event of the core as one of events.k8s.io."""
    return {_NAMES.get(name, name): value for name, value in raw.items()}


def to_core(raw: Raw) -> Raw:
    """An Event of events.k8s.io as one of the core."""
    return {_CORE_NAMES.get(name, name): value for name, value in raw.items()}


def core_selector(field_selector: str) -> str:
    """A field selector over Events of events.k8s.io as one over those of the core."""
    parts = field_selector.split(",")
    for theirs, ours in _SELECTED:
        parts = [ours + part.removeprefix(theirs) if part.startswith(theirs) else part for part in parts]
    return ",".join(parts)
