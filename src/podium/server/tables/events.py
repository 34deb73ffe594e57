"""How events are shown (printEvent), those of core/v1 and those of events.k8s.io/v1 alike."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.server.tables.cells import UNKNOWN, name, number, since, text, value
from podium.server.tables.column import NAME, Cells, Column, Printer

_COLUMNS = (
    Column("Last Seen", "How long ago it happened last."),
    Column("Type", "Whether it is as usual, or a warning."),
    Column("Reason", "What happened, in one word."),
    Column("Object", "What it happened to."),
    Column("Subobject", "What part of that.", priority=1),
    Column("Source", "Who tells.", priority=1),
    Column("Message", "What happened."),
    Column("First Seen", "How long ago it happened first.", priority=1),
    Column("Count", "How often it happened.", priority=1),
    Column("Name", NAME.description, format="name", priority=1),
)
# What events.k8s.io/v1 calls the fields of core/v1.
_RENAMED = {
    "note": "message",
    "regarding": "involvedObject",
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedSource": "source",
    "reportingController": "reportingComponent",
}


def _event(raw: Raw, now: int) -> Cells:
    raw = {_RENAMED.get(field, field): found for field, found in raw.items()}
    first = since(raw, now, "firstTimestamp")
    if first == UNKNOWN:
        first = since(raw, now, "eventTime")
    last = since(raw, now, "lastTimestamp")
    count = number(raw, "count") or 1
    if isinstance(value(raw, "series"), dict):
        last = since(raw, now, "series", "lastObservedTime")
        count = number(raw, "series", "count")
    elif last == UNKNOWN:
        last = first
    return (
        last,
        text(raw, "type"),
        text(raw, "reason"),
        "/".join(filter(None, (text(raw, "involvedObject", "kind").lower(), text(raw, "involvedObject", "name")))),
        text(raw, "involvedObject", "fieldPath"),
        _source(raw),
        text(raw, "message").strip(),
        first,
        count,
        name(raw),
    )


def _source(raw: Raw) -> str:
    component = text(raw, "source", "component") or text(raw, "reportingComponent")
    instance = text(raw, "source", "host") or text(raw, "reportingInstance")
    return f"{component}, {instance}" if instance else component


_PRINTER = Printer(_COLUMNS, _event)
PRINTERS = {("", "Event"): _PRINTER, ("events.k8s.io", "Event"): _PRINTER}
