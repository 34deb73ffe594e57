"""What happened to the objects of one kind, and who waits for more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from podium.store.log.watch_event import WatchEvent
from podium.store.stored import LeftVersions

LEAST_KEPT = 100
"""So many of a kind's last events are known whatever happens to others (kube-apiserver's smallest watch cache)."""

LEFT_ENCODED = 1_000
"""So many versions that are the newest no longer keep their encoded bytes."""


class KindLog:
    """The last events of a kind: all of them after version `begin`.

    They go as those of all kinds do, but for the last `LEAST_KEPT`. Once it `is_ended` no more come: the kind is served
    no longer, or in another way.
    """

    __slots__ = ("_capacity", "_events", "_least", "_left", "begin", "is_ended", "waiting")

    def __init__(self, begin: int, capacity: int) -> None:
        self.begin = begin
        self._capacity = capacity
        self._least = min(LEAST_KEPT, capacity)
        self._events: deque[WatchEvent] = deque(maxlen=capacity)
        self._left = LeftVersions(LEFT_ENCODED)
        self.waiting: dict[object, Callable[[], None]] = {}
        self.is_ended = False

    @property
    def last(self) -> int:
        """The version of the last event, or of the last one that was forgotten."""
        return self._events[-1].stored.version if self._events else self.begin

    def append(self, event: WatchEvent) -> None:
        """Add an event; the oldest goes where there are as many as may be."""
        events = self._events
        if len(events) == self._capacity and events:
            self.begin = events[0].stored.version
        events.append(event)
        if event.previous is not None:
            event.previous.leave(self._left)
        if event.type == "DELETED":
            event.stored.leave(self._left)

    def trim(self, version: int) -> None:
        """Let go of the events up to `version`, but for as many as are kept in any case."""
        events = self._events
        while len(events) > self._least and events[0].stored.version <= version:
            self.begin = events.popleft().stored.version

    def compact(self, version: int) -> None:
        """Forget the events up to `version`."""
        while self._events and self._events[0].stored.version <= version:
            self._events.popleft()
        self.begin = max(self.begin, version)

    def since(self, version: int) -> list[WatchEvent]:
        """The events after `version`, which is `begin` or a later one, oldest first."""
        if version >= self.last:
            return []
        found = []
        for event in reversed(self._events):
            if event.stored.version <= version:
                break
            found.append(event)
        found.reverse()
        return found

    def wait(self, who: object, wake: Callable[[], None]) -> None:
        """Have `wake` called once, with the next event."""
        self.waiting[who] = wake

    def wait_no_longer(self, who: object) -> None:
        """Forget somebody who waits, or does not."""
        self.waiting.pop(who, None)

    def take_waiting(self) -> list[Callable[[], None]]:
        """Those who wait, in the order in which they came; they wait no longer."""
        woken = list(self.waiting.values())
        self.waiting.clear()
        return woken
