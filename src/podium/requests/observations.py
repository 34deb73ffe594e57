"""What machines are told of the events of watches, and of lists."""

from __future__ import annotations

from podium.machines.observations import Changed, Gone
from podium.store.stored import Stored
from podium.store.watch_log import WatchEvent


def observation_of(event: WatchEvent) -> Changed | Gone:
    """A write as whoever watches is told of it."""
    stored = event.stored
    return Gone(stored.object) if event.type == "DELETED" else Changed(stored.object, stored.raw)


def listed(stored: Stored) -> Changed:
    """An object as whoever begins to watch is told of it."""
    return Changed(stored.object, stored.raw)
