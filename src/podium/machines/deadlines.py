"""When each of many things is due."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from podium.api.times import MAX_TIME_NS

Key = TypeVar("Key")

SLACK = 32


def earliest(times: Iterable[int | None]) -> int | None:
    """The first of some times, None where there is none; None among them stands for never."""
    return min((time for time in times if time is not None), default=None)


class Deadlines(Generic[Key]):
    """One time for each key, in nanoseconds; another replaces it. Keys of one time are taken in the order set."""

    def __init__(self) -> None:
        self._times: dict[Key, int] = {}
        # What was replaced stays here until it comes up, or there is more of it than of what counts.
        self._heap: list[tuple[int, int, Key]] = []
        self._added = 0

    def all_keys(self) -> list[Key]:
        """All that is due at some time."""
        return list(self._times)

    def set(self, key: Key, time_ns: int | None) -> None:
        """The key is due at that time and no other; None, and what comes after the last time that there is: never."""
        if time_ns is None or time_ns > MAX_TIME_NS:
            self._times.pop(key, None)
        elif self._times.get(key) != time_ns:
            self._times[key] = time_ns
            self._added += 1
            heappush(self._heap, (time_ns, self._added, key))
        if len(self._heap) > 2 * len(self._times) + SLACK:
            self._sweep()

    def time_of(self, key: Key) -> int | None:
        """When the key is due; None: never."""
        return self._times.get(key)

    def next_time(self) -> int | None:
        """The first time, None when nothing is ever due."""
        while self._heap and self._times.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: int) -> Key | None:
        """Remove and return the first key if its time has come, else None."""
        time_ns = self.next_time()
        if time_ns is None or time_ns > now:
            return None
        key = heappop(self._heap)[2]
        del self._times[key]
        return key

    def _sweep(self) -> None:
        # A time that was set, replaced and set again counts where it was set last.
        newest = {key: (time_ns, added, key) for time_ns, added, key in sorted(self._heap, key=lambda one: one[1])}
        self._heap = [one for key, one in newest.items() if self._times.get(key) == one[0]]
        heapify(self._heap)
