"""The events of a simulation as lines of text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from podium.api.times import format_duration
from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Cell, Name, Page, Part, names_of
from podium.sim.history import SimEvent

MOST_LINES = 60
"""The maximum number of lines; longer timelines are shown as a digest."""

_MOST_PREEMPTIONS = 20
_FEWEST_ALIKE = 3
_NO_CLAIMS = "no new claims to deallocate, "
_AVAILABLE = re.compile(r"0/\d+ nodes are available: ")
# Components that are not named, since they are the usual actors.
_USUAL = frozenset(("default-scheduler", "kubelet"))
# Reasons with messages that repeat the other columns.
_REDUNDANT = frozenset(("Scheduled", "Preempted"))
_STYLES = {
    "Scheduled": "good",
    "Started": "good",
    "Finished": "good",
    "Nominated": "title",
    "Preempted": "bad",
    "Evicted": "bad",
    "Failed": "bad",
    "FailedCreate": "warn",
    "FailedScheduling": "warn",
    "NominationCleared": "warn",
    "StepSkipped": "warn",
}


def folded(events: Iterable[SimEvent]) -> list[SimEvent]:
    """Return the events, with consecutive equal failures of a pod or workload merged into one."""
    lines: list[SimEvent] = []
    latest: dict[str, int] = {}
    for event in events:
        subject = event.subject
        place = latest.get(subject) if subject else None
        if place is not None and (both := lines[place].repeated(event)):
            lines[place] = both
            continue
        if subject:
            latest[subject] = len(lines)
        lines.append(event)
    return lines


def write_timeline(page: Page, events: list[SimEvent], *, every_event: bool = False) -> None:
    """Write a line for each event: time, reason, pod, node, and the actor or the reason.

    Consecutive equal failures of more than two pods at the same time share a line unless `every_event`.
    """
    if not events:
        page.title("Timeline", "nothing happens")
        return
    page.title("Timeline", "time from the start")
    groups = [[event] for event in events] if every_event else _alike(events)
    page.columns([_line(alike) for alike in groups], indent=2, right=(0,))


def _alike(events: Iterable[SimEvent]) -> Iterator[list[SimEvent]]:
    """Yield the events in their order, grouped by line."""
    for _, group in groupby(events, key=lambda each: (each.time, each.reason, each.node, each.by, _detail(each))):
        alike = list(group)
        if len(alike) >= _FEWEST_ALIKE and alike[0].is_failure:
            yield alike
        else:
            yield from ([event] for event in alike)


def _line(alike: Sequence[SimEvent]) -> list[Part]:
    event = alike[0]
    pods = [other.pod or "" for other in alike]
    return [
        Cell(since(event.time), "dim"),
        Cell(event.reason, _STYLES.get(event.reason, "")),
        Name(pods[0], PODS) if len(pods) == 1 else names_of(pods, PODS, most=1),
        Name(event.node or "", NODES),
        _detail(event),
    ]


def write_digest(page: Page, events: list[SimEvent]) -> None:
    """Write the number of events of each reason, and the preemptions."""
    page.title("Events", f"{sum(event.count for event in events):,}; --events lists them all")
    counts: Counter[str] = Counter()
    for event in events:
        counts[event.reason] += event.count
    rows = [(f"{number:,}", Cell(reason, _STYLES.get(reason, ""))) for reason, number in counts.most_common()]
    page.columns(rows, indent=2, right=(0,))
    preemptions = [event for event in events if event.reason == "Preempted"]
    shown = preemptions[:_MOST_PREEMPTIONS]
    if preemptions:
        page.title("Preemptions", f"the first {len(shown)}" if len(preemptions) > len(shown) else "")
    lines = []
    for event in shown:
        pod, node = Name(event.pod or "", PODS, "bad"), Name(event.node or "", NODES, before="on ")
        lines.append((Cell(since(event.time), "dim"), pod, node, Name(event.by or "", PODS, before="by ")))
    page.columns(lines, indent=2, right=(0,))


def since(time: float) -> str:
    """Return a time since the start, such as `+1m30s`."""
    return f"+{format_duration(round(time * 10**9))}"


def whole_reason(message: str) -> str:
    """Return why no node fits a pod and the result of preemption, without redundant parts.

    These are the number of all nodes, and the note that there are no claims to deallocate.
    """
    return _AVAILABLE.sub("", message).replace(_NO_CLAIMS, "").rstrip(".")


def _reason(message: str) -> str:
    """Return why no node fits a pod; of preemption only ineligibility, since later events report the rest."""
    reasons, _, rest = whole_reason(message).partition(". ")
    rest = rest.removeprefix("preemption: ")
    return f"{reasons}, {rest}" if rest.startswith("not eligible") else reasons


def _detail(event: SimEvent) -> str:
    parts = [f"by {event.by}"] if event.by and event.by not in _USUAL else []
    if event.message and event.reason not in _REDUNDANT:
        parts.append(_reason(event.message) if event.reason == "FailedScheduling" else event.message)
    merged = f" ({event.count} times, last at {since(event.last_time)})" if event.count > 1 else ""
    return ": ".join(parts) + merged
