"""The events of a simulation as lines that people can follow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from podium.api.times import format_duration
from podium.app.console.page import Cell, Page, Part, shortened
from podium.sim.history import SimEvent, again, is_repeated, subject_of

MOST_LINES = 60
"""Of longer timelines a digest is shown."""

_MOST_PREEMPTIONS = 20
_LEAST_DETAIL = 16
_NO_CLAIMS = "no new claims to deallocate, "
_AVAILABLE = re.compile(r"0/\d+ nodes are available: ")
# Who does these things when nothing else is said.
_USUAL = frozenset(("default-scheduler", "kubelet"))
# Their messages say what the other columns say.
_TOLD = frozenset(("Scheduled", "Preempted"))
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
    """The events, where what fails for a pod or workload as it did before, with nothing in between, has no own line."""
    lines: list[SimEvent] = []
    latest: dict[str, int] = {}
    for event in events:
        subject = subject_of(event)
        place = latest.get(subject) if subject else None
        if place is not None and is_repeated(lines[place], event):
            lines[place] = again(lines[place], event)
            continue
        if subject:
            latest[subject] = len(lines)
        lines.append(event)
    return lines


def write_timeline(page: Page, events: list[SimEvent]) -> None:
    """Write a line for each event: time, reason, pod, node, and who did it or why, as far as there is room."""
    if not events:
        page.title("Timeline", "nothing happens")
        return
    page.title("Timeline", "time from the start")
    rows = [[since(event.time), *_names(event, page.short_name_width)] for event in events]
    taken = sum(max(len(row[column]) for row in rows) + 2 for column in range(4))
    room = max(page.width - 2 - taken, _LEAST_DETAIL)
    page.columns(
        [
            [Cell(row[0], "dim"), Cell(row[1], _STYLES.get(row[1], "")), *row[2:], _detail(event, room)]
            for row, event in zip(rows, events, strict=True)
        ],
        indent=2,
        right=(0,),
    )


def write_digest(page: Page, events: list[SimEvent]) -> None:
    """Write how often each thing happened, and the preemptions."""
    page.title("Events", f"{sum(event.count for event in events):,}; --events lists them all")
    counts: Counter[str] = Counter()
    for event in events:
        counts[event.reason] += event.count
    rows: list[list[Part]] = [
        [f"{number:,}", Cell(reason, _STYLES.get(reason, ""))] for reason, number in counts.most_common()
    ]
    page.columns(rows, indent=2, right=(0,))
    preemptions = [event for event in events if event.reason == "Preempted"]
    if preemptions:
        shown = preemptions[:_MOST_PREEMPTIONS]
        page.title("Preemptions", f"the first {len(shown)}" if len(preemptions) > len(shown) else "")
        page.columns([_preemption(event, page.short_name_width) for event in shown], indent=2, right=(0,))


def since(time: float) -> str:
    """A time from the start, as in `+1m30s`."""
    return f"+{format_duration(round(time * 10**9))}"


def whole_reason(message: str) -> str:
    """Why a pod fits nowhere, and what preemption says to that, without what goes without saying.

    That is the number of all nodes, and, as with most pods, that there are no claims to take devices from.
    """
    return _AVAILABLE.sub("", message).replace(_NO_CLAIMS, "").rstrip(".")


def _reason(message: str) -> str:
    """Why a pod fits nowhere; of preemption only that the pod may not, since all else is told by what follows."""
    reasons, _, rest = whole_reason(message).partition(". ")
    rest = rest.removeprefix("preemption: ")
    return f"{reasons}, {rest}" if rest.startswith("not eligible") else reasons


def _names(event: SimEvent, width: int) -> tuple[str, str, str]:
    return event.reason, shortened(event.pod or "", width), shortened(event.node or "", width)


def _detail(event: SimEvent, room: int) -> str:
    parts = [f"by {event.by}"] if event.by and event.by not in _USUAL else []
    if event.message and event.reason not in _TOLD:
        parts.append(_reason(event.message) if event.reason == "FailedScheduling" else event.message)
    again = f" ({event.count} times, last at {since(event.last_time)})" if event.count > 1 else ""
    text = ": ".join(parts)
    if len(text) + len(again) > room:
        text = f"{text[: max(room - len(again) - 1, _LEAST_DETAIL)].rstrip()}…"
    return text + again


def _preemption(event: SimEvent, width: int) -> list[Part]:
    _, pod, node = _names(event, width)
    return [Cell(since(event.time), "dim"), Cell(pod, "bad"), f"on {node}", f"by {event.by}"]
