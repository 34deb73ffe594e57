"""What happened to the objects, version by version."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice

from podium.store.errors import expired, too_large
from podium.store.log.kind_log import KindLog
from podium.store.log.watch_event import WatchEvent


class WatchLog:
    """The last events, at most `capacity` of them; every version after `oldest` has exactly one.

    The same by kind reaches back further where a kind is quiet: what happened to a few nodes is not forgotten because
    of many pods (kube-apiserver has a watch cache for each resource).
    """

    def __init__(self, capacity: int, begin: int = 0) -> None:
        self._capacity = capacity
        self._events: deque[WatchEvent] = deque(maxlen=capacity)
        self._kinds: dict[str, KindLog] = {}
        # Up to here nothing is known of any kind.
        self._floor = begin
        self.version = begin
        # Those whom the events woke, until somebody calls them.
        self.woken: list[Callable[[], None]] = []

    @property
    def oldest(self) -> int:
        """The version after which everything is known."""
        return self.version - len(self._events)

    def of(self, kind: str) -> KindLog:
        """The events of a kind, by its name in the store."""
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = KindLog(self._floor, self._capacity)
        return found

    def begin_anew(self, kind: str) -> None:
        """End the events of a kind, and let others begin after the version that there is now."""
        self.end(kind)
        self._kinds[kind] = KindLog(self.version, self._capacity)

    def end(self, kind: str) -> None:
        """End the events of a kind, so that those who wait for more hear that none come, and forget them."""
        found = self._kinds.pop(kind, None)
        if found is not None:
            found.is_ended = True
            self.woken += found.take_waiting()

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
            oldest = known[0].stored
            trimmed = self._kinds.get(oldest.resource.name)
            if trimmed is not None:
                trimmed.trim(oldest.version)
        known.append(event)

    def compact(self, version: int) -> None:
        """Forget the events up to `version`."""
        while self._events and self._events[0].version <= version:
            self._events.popleft()
        self._floor = max(self._floor, min(version, self.version))
        for kind in self._kinds.values():
            kind.compact(self._floor)

    def check(self, version: int, kind: str = "") -> None:
        """Raise StoreError where not all is known after `version`: of one kind, or for "" of all.

        410 Expired when some events are no longer kept, 504 for a version to come.
        """
        if version > self.version:
            raise too_large(version, self.version)
        oldest = self.of(kind).begin if kind else self.oldest
        if version < oldest:
            raise expired(version, oldest)

    def since(self, version: int, kind: str = "") -> list[WatchEvent]:
        """The events after `version`, of one kind or of all, oldest first. Raises as `check` does."""
        if version == self.version - 1 and self._events:
            event = self._events[-1]
            if not kind:
                return [event]
            if kind in self._kinds and event.stored.resource.name != kind and version >= self._kinds[kind].begin:
                return []
        self.check(version, kind)
        if kind:
            return self.of(kind).since(version)
        newest_first = list(islice(reversed(self._events), self.version - version))
        newest_first.reverse()
        return newest_first
