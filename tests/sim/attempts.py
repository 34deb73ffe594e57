"""Every failed attempt with its time; a result merges equal failures into one event."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from podium.api.times import seconds
from podium.controllers.actions import Record
from podium.sim.history import EventHistory

Attempts = list[tuple[float, str]]
"""When, in seconds from the start, and the pod's key."""


@contextmanager
def failed_attempts_told() -> Iterator[Attempts]:
    """Provide the attempts of the simulations in this context, in their order."""
    found: Attempts = []
    record = EventHistory.record

    def telling(history: EventHistory, action: Record, by: str, now: int) -> None:
        record(history, action, by, now)
        if action.reason == "FailedScheduling":
            found.append((seconds(now - history.start_ns), action.pod))

    with patch.object(EventHistory, "record", telling):
        yield found
