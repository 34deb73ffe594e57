"""The log of writes, version by version."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import msgspec

from podium.store.errors import expired, too_large
from podium.store.stored import Stored

LEAST_KEPT = 100
"""The number of a kind's last events that are kept regardless of others (kube-apiserver's smallest watch cache)."""

LEFT_ENCODED = 1_000
"""The number of superseded versions that keep their encoded bytes."""


class WatchLog:
    """The last events, at most `capacity` of them; every version after `oldest` has exactly one.

    The logs of single kinds reach further back for kinds with few events: the events of a few nodes are not evicted by
    those of many pods (kube-apiserver has a watch cache for each resource).
    """

    def __init__(self, capacity: int, begin: int = 0) -> None:
        self._capacity = capacity
        self._events: deque[WatchEvent] = deque(maxlen=capacity)
        self._kinds: dict[str, KindLog] = {}
        # Events up to this version are unknown for every kind.
        self._floor = begin
        self.version = begin
        # The callbacks of woken waiters, until they are called.
        self.woken: list[Callable[[], object]] = []

    @property
    def oldest(self) -> int:
        """The version after which all events are known."""
        return self.version - len(self._events)

    def of(self, kind: str) -> KindLog:
        """Return the events of a kind, by its name in the store."""
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = KindLog(self._floor, self._capacity)
        return found

    def end(self, kind: str, *, begins_anew: bool = False) -> None:
        """End the log of a kind, so that waiters learn that no more events follow; another one may begin anew."""
        found = self._kinds.pop(kind, None)
        if found is not None:
            found.is_ended = True
            self.woken += found.take_waiting()
        if begins_anew:
            self._kinds[kind] = KindLog(self.version, self._capacity)

    def append(self, event: WatchEvent) -> None:
        """Add the event of the next version. Raises ValueError for any other."""
        stored, known = event.stored, self._events
        version, name = stored.version, stored.resource.name
        if version != self.version + 1:
            raise ValueError(f"version {version} does not follow {self.version}")
        self.version = version
        kind = self._kinds.get(name) or self.of(name)
        kind.append(event)
        if kind.waiting:
            self.woken += kind.take_waiting()
        if len(known) == self._capacity and known:
            self._trim(known[0].stored)
        known.append(event)

    def keep_at_most(self, capacity: int) -> None:
        """Keep no more than so many events from now on."""
        self._capacity = capacity
        while len(self._events) > capacity:
            self._trim(self._events.popleft().stored)
        self._events = deque(self._events, maxlen=capacity)

    def _trim(self, oldest: Stored) -> None:
        """Drop the events up to the oldest one from the log of its kind."""
        kind = self._kinds.get(oldest.resource.name)
        if kind is not None:
            kind.trim(oldest.version)

    def compact(self, version: int) -> None:
        """Drop the events up to `version`."""
        while self._events and self._events[0].version <= version:
            self._events.popleft()
        self._floor = max(self._floor, min(version, self.version))
        for kind in self._kinds.values():
            kind.compact(self._floor)

    def check(self, version: int, kind: str = "") -> None:
        """Raise StoreError if events after `version` are missing, of one kind, or of all for "".

        410 Expired if some events are no longer kept, 504 for a version in the future.
        """
        if version > self.version:
            raise too_large(version, self.version)
        oldest = self.of(kind).begin if kind else self.oldest
        if version < oldest:
            raise expired(version, oldest)

    def since(self, version: int, kind: str = "") -> list[WatchEvent]:
        """Return the events after `version`, of one kind or of all, oldest first. Raises as `check` does."""
        if version == self.version - 1 and self._events:
            if not kind:
                return [self._events[-1]]
            is_other = self._events[-1].stored.resource.name != kind
            if is_other and kind in self._kinds and version >= self._kinds[kind].begin:
                return []
        self.check(version, kind)
        if kind:
            return self.of(kind).since(version)
        newest_first = list(islice(reversed(self._events), self.version - version))
        newest_first.reverse()
        return newest_first


@dataclass(slots=True, eq=False)
class KindLog:
    """The last events of a kind: all of them after version `begin`.

    Events are dropped together with those of all kinds, except for the last `LEAST_KEPT`. After `is_ended`, no more
    follow: the kind is no longer served, or is served differently.
    """

    begin: int
    capacity: int
    _events: deque[WatchEvent] = field(init=False)
    _left: deque[Stored] = field(default_factory=lambda: deque(maxlen=LEFT_ENCODED))
    waiting: dict[object, Callable[[], object]] = field(default_factory=dict)
    """The waiters, each with a function that is called once, with the next event."""
    is_ended: bool = False

    def __post_init__(self) -> None:
        self._events = deque(maxlen=self.capacity)

    @property
    def last(self) -> int:
        """The version of the last event, or of the last one that was dropped."""
        return self._events[-1].stored.version if self._events else self.begin

    def append(self, event: WatchEvent) -> None:
        """Add an event; drop the oldest one at capacity."""
        events = self._events
        if len(events) == self.capacity and events:
            self.begin = events[0].stored.version
        events.append(event)
        if event.previous is not None:
            event.previous.leave(self._left)
        if event.type == "DELETED":
            event.stored.leave(self._left)

    def trim(self, version: int) -> None:
        """Drop the events up to `version`, except for the number that is always kept."""
        events, least = self._events, min(LEAST_KEPT, self.capacity)
        while len(events) > least and events[0].stored.version <= version:
            self.begin = events.popleft().stored.version

    def compact(self, version: int) -> None:
        """Drop the events up to `version`."""
        while self._events and self._events[0].stored.version <= version:
            self._events.popleft()
        self.begin = max(self.begin, version)

    def since(self, version: int) -> list[WatchEvent]:
        """Return the events after `version`, which is at least `begin`, oldest first."""
        if version >= self.last:
            return []
        found = []
        for event in reversed(self._events):
            if event.stored.version <= version:
                break
            found.append(event)
        found.reverse()
        return found

    def take_waiting(self) -> list[Callable[[], object]]:
        """Remove all waiters and return their callbacks in the order of registration."""
        woken = list(self.waiting.values())
        self.waiting.clear()
        return woken


class WatchEvent(msgspec.Struct, frozen=True):
    """A committed write.

    `stored` is the object after it; for DELETED, the last state of the object at the version of its removal. `previous`
    is the object before it, None for ADDED.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    stored: Stored
    previous: Stored | None

    @property
    def version(self) -> int:
        """The version that the write committed."""
        return self.stored.version
