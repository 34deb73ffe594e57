"""What one component sees of the API server: a watch of each kind of object, which may lag, break or repeat itself.

Source: k8s.io/client-go/tools/cache (reflector, DeltaFIFO).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from podium.requests.observations import Seen, arrived, differences, first_seen
from podium.sim.faulty.faults import Faults
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store
from podium.store.stored import Stored


@dataclass(slots=True)
class _Coming:
    """An event on its way: when it arrives, a number that grows, and what it says; ``is_merged``: nothing."""

    arrival_ns: int
    number: int
    type: str
    stored: Stored
    is_merged: bool = False


@dataclass(slots=True)
class _Kind:
    """The watch of one kind: what is on its way, what has arrived by key, and until when it is broken."""

    coming: deque[_Coming]
    known: dict[str, Stored]
    broken_until_ns: int | None = None


class Informer:
    """Hands on what happens to objects of some kinds as the faults have it; without faults, at once.

    A watch keeps its order; watches of different kinds may overtake one another. When a broken watch is back, its kind
    is listed: what has gone meanwhile is told as gone, unless a namesake has come, which is told as a change.
    """

    def __init__(self, component: str, kinds: Collection[str], store: Store, faults: Faults) -> None:
        self._component = component
        self._watched = kinds
        self._store = store
        self._faults = faults
        self._kinds: dict[str, _Kind] = {}
        self._number = 0

    def start(self, now: int) -> list[Seen]:
        """Begin anew, with a list of everything, which may be old; what has happened since comes as events."""
        self._kinds.clear()
        lag = min(self._faults.list_lag(self._component), self._store.version - self._oldest())
        version = self._store.version - lag
        missed = self._store.events_since(version)
        was = _before(missed)
        for kind in self._watched:
            listed = {stored.key: stored for stored in self._store.objects(kind)}
            for key, before in was.get(kind, {}).items():
                listed.pop(key, None)
                if before is not None:
                    listed[key] = before
            if listed:
                self._kind(kind).known = dict(sorted(listed.items()))
        seen: list[Seen] = [
            first_seen(stored) for one_kind in self._kinds.values() for stored in one_kind.known.values()
        ]
        for event in missed:
            if self.watches(event.stored.kind):
                self.see(event, now)
        return seen

    def watches(self, kind: str) -> bool:
        """Whether what happens to objects of the kind is for the component."""
        return kind in self._watched

    def see(self, event: WatchEvent, now: int) -> None:
        """Something was written to an object of a kind that is watched."""
        stored = event.stored
        kind = self._kind(stored.kind)
        if kind.broken_until_ns is not None:
            return
        delivery = self._faults.delivery(self._component, stored.kind)
        if delivery.breaks_ns is not None:
            kind.broken_until_ns = now + delivery.breaks_ns
            return
        if delivery.merges:
            for coming in kind.coming:
                coming.is_merged |= coming.stored.key == stored.key
        arrival_ns = now + delivery.delay_ns
        if kind.coming:
            arrival_ns = max(arrival_ns, kind.coming[-1].arrival_ns)
        for _ in range(delivery.copies):
            self._number += 1
            kind.coming.append(_Coming(arrival_ns, self._number, event.type, stored))

    def take(self, now: int) -> Seen | None:
        """What arrives next, if it is there."""
        self._relist(now)
        while True:
            kinds = [kind for kind in self._kinds.values() if kind.coming]
            if not kinds:
                return None
            kind = min(kinds, key=lambda kind: (kind.coming[0].arrival_ns, kind.coming[0].number))
            if kind.coming[0].arrival_ns > now:
                return None
            one = kind.coming.popleft()
            if not one.is_merged:
                return arrived(kind.known, one.type, one.stored)

    def next_time(self) -> int | None:
        """When something arrives, or a broken watch is back; None when nothing is on its way."""
        times = [kind.coming[0].arrival_ns for kind in self._kinds.values() if kind.coming]
        times += [kind.broken_until_ns for kind in self._kinds.values() if kind.broken_until_ns is not None]
        return min(times, default=None)

    def _relist(self, now: int) -> None:
        """List the kinds whose watch is back."""
        for name, kind in self._kinds.items():
            if kind.broken_until_ns is None or kind.broken_until_ns > now:
                continue
            kind.broken_until_ns = None
            expected = dict(kind.known)
            for coming in kind.coming:
                if coming.type == "DELETED":
                    expected.pop(coming.stored.key, None)
                else:
                    expected[coming.stored.key] = coming.stored
            arrival_ns = kind.coming[-1].arrival_ns if kind.coming else now
            for type_, stored in differences(expected, {stored.key: stored for stored in self._store.objects(name)}):
                self._number += 1
                kind.coming.append(_Coming(arrival_ns, self._number, type_, stored))

    def _kind(self, name: str) -> _Kind:
        return self._kinds.setdefault(name, _Kind(deque(), {}))

    def _oldest(self) -> int:
        return self._store.oldest_version


def _before(events: list[WatchEvent]) -> dict[str, dict[str, Stored | None]]:
    """By kind and key, the objects that the events concern, as they were before; None for those that were not there."""
    found: dict[str, dict[str, Stored | None]] = {}
    for event in events:
        found.setdefault(event.stored.kind, {}).setdefault(event.stored.key, event.previous)
    return found
