"""Events as a cluster has them (core/v1), reduced to what tells of pods.

Source: pkg/apis/core/types.go (Event).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from podium.api.meta import Raw
from podium.machines.ledger.transitions import time_of


class ToldEvent(NamedTuple):
    """An Event: when it came last, what it is about, and who tells it, from which node ("" for none)."""

    time_ns: int
    reason: str
    message: str
    kind: str
    key: str
    uid: str
    by: str
    host: str
    related: str
    related_uid: str
    is_warning: bool
    action: str


def told_events(raws: Iterable[Raw]) -> list[ToldEvent]:
    """The Events that can be read, by time, then as they came."""
    found = (_told(raw) for raw in raws)
    return sorted((event for event in found if event is not None), key=lambda event: event.time_ns)


def _told(raw: Raw) -> ToldEvent | None:
    time_ns = _time_ns(raw)
    about, related = _part(raw, "involvedObject"), _part(raw, "related")
    if time_ns is None or not _text(about, "name"):
        return None
    source = _part(raw, "source")
    return ToldEvent(
        time_ns,
        _text(raw, "reason"),
        _text(raw, "message"),
        _text(about, "kind"),
        _key(about),
        _text(about, "uid"),
        _text(source, "component") or _text(raw, "reportingComponent"),
        _text(source, "host") or (_text(raw, "reportingInstance") if _text(source, "component") == "kubelet" else ""),
        _key(related),
        _text(related, "uid"),
        _text(raw, "type") == "Warning",
        _text(raw, "action"),
    )


def _time_ns(raw: Raw) -> int | None:
    """When it came last; of a series, that is the last of it."""
    metadata, series = _part(raw, "metadata"), _part(raw, "series")
    times = (
        *(series.get("lastObservedTime"), raw.get("lastTimestamp"), raw.get("eventTime")),
        *(raw.get("firstTimestamp"), metadata.get("creationTimestamp")),
    )
    return next((time_ns for text in times if (time_ns := time_of(text)) is not None), None)


def _key(reference: dict[str, Any]) -> str:
    namespace, name = _text(reference, "namespace"), _text(reference, "name")
    return f"{namespace}/{name}" if namespace and name else ""


def _part(raw: dict[str, Any], name: str) -> dict[str, Any]:
    found = raw.get(name)
    return found if isinstance(found, dict) else {}


def _text(raw: dict[str, Any], name: str) -> str:
    found = raw.get(name)
    return found if isinstance(found, str) else ""
