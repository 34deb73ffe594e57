"""What happened to the objects, version by version."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from podium.store.errors import expired, too_large
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
    """The last events, at most `capacity` of them; every version after `begin` has exactly one."""

    def __init__(self, capacity: int, begin: int = 0) -> None:
        self._events: deque[WatchEvent] = deque(maxlen=capacity)
        self.version = begin

    @property
    def oldest(self) -> int:
        """The version after which everything is known."""
        return self.version - len(self._events)

    def extend(self, events: Iterable[WatchEvent]) -> None:
        """Add the events of the next versions. Raises ValueError for any other."""
        for event in events:
            if event.stored.version != self.version + 1:
                raise ValueError(f"version {event.version} does not follow {self.version}")
            self.version += 1
            self._events.append(event)

    def compact(self, version: int) -> None:
        """Forget the events up to `version`."""
        while self._events and self._events[0].version <= version:
            self._events.popleft()

    def check(self, version: int) -> None:
        """Raises StoreError: 410 Expired when some events after `version` are no longer kept, 504 for one to come."""
        if version > self.version:
            raise too_large(version, self.version)
        if version < self.oldest:
            raise expired(version, self.oldest)

    def since(self, version: int) -> list[WatchEvent]:
        """The events after `version`, oldest first. Raises as `check` does."""
        self.check(version)
        newest_first = reversed(self._events)
        return [next(newest_first) for _ in range(self.version - version)][::-1]
