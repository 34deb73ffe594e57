"""Events go an hour after they were last written (kube-apiserver's --event-ttl), and sooner where they are many.

Source: pkg/registry/core/event/strategy.go.
"""

from __future__ import annotations

from podium.store.errors import StoreError
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store

EVENT = "Event"
TTL_NS = 3600 * 10**9
MOST = 20_000
"""So many Events there are at most, since nobody needs more and each takes memory; the oldest go first."""


class EventExpiry:
    """Knows when each Event goes. Those that are there at the start are as old as the start."""

    def __init__(self, store: Store, now: int) -> None:
        self._store = store
        # By key, when it was last written; the oldest first.
        self._written = {stored.key: now for stored in store.objects(EVENT)}

    def observe(self, event: WatchEvent, now: int) -> None:
        """An Event was written, or is gone."""
        key = event.stored.key
        self._written.pop(key, None)
        if event.type != "DELETED":
            self._written[key] = now

    def next_time(self) -> int | None:
        """When the next one goes, None where there is none."""
        if len(self._written) > MOST:
            return 0
        return next((written_ns + TTL_NS for written_ns in self._written.values()), None)

    def expire(self, now: int, most: int) -> int:
        """Let those go whose time has come, ``most`` at a time; how many went."""
        count = 0
        while count < most and (next_ns := self.next_time()) is not None and next_ns <= now:
            key = next(iter(self._written))
            del self._written[key]
            count += 1
            try:
                self._store.delete(EVENT, key, now=now)
            except StoreError as error:
                if error.reason != "NotFound":
                    raise
        return count
