"""What happened to the objects, version by version."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

from podium.store.errors import StoreError
from podium.store.stored import Stored


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One committed write.

    `stored` is the object after it; for DELETED the object as it was last, at the version of its removal.
    `previous` is the object before it, None for ADDED.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    stored: Stored
    previous: Stored | None

    @property
    def version(self) -> int:
        """The version that the write committed."""
        return self.stored.version


class WatchLog:
    """The last events, at most `capacity` of them; every version has exactly one."""

    def __init__(self, capacity: int) -> None:
        self._events: deque[WatchEvent] = deque(maxlen=capacity)
        self.version = 0

    def append(self, event: WatchEvent) -> None:
        """Add the event of the next version. Raises ValueError for any other."""
        if event.version != self.version + 1:
            raise ValueError(f"version {event.version} does not follow {self.version}")
        self.version = event.version
        self._events.append(event)

    def since(self, version: int) -> list[WatchEvent]:
        """The events after `version`, oldest first.

        Raises StoreError: 410 Expired when some of them are no longer kept, 504 Timeout for a version to come.
        """
        if version > self.version:
            raise StoreError(504, "Timeout", f"too large resource version: {version}, current: {self.version}")
        count = self.version - version
        if count > len(self._events):
            oldest = self.version - len(self._events)
            raise StoreError(410, "Expired", f"too old resource version: {version} ({oldest})")
        newest_first = reversed(self._events)
        return [next(newest_first) for _ in range(count)][::-1]
