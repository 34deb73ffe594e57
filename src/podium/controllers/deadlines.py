"""Deadlines of controllers, and the times of many keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

import msgspec

from podium.api.times import MAX_TIME_NS

Key = TypeVar("Key")

SLACK = 32


class Deadline(msgspec.Struct, frozen=True, gc=False):
    """When a controller is next due, and whether it keeps a simulation running.

    ``time_ns`` 0 is at once, None never. ``keeps_alive``: something new is expected to happen, now or later, even if
    nothing is due. Retries of what keeps failing, and periodic work, do not keep a simulation running.
    """

    time_ns: int | None
    keeps_alive: bool


NEVER = Deadline(None, False)
AT_ONCE = Deadline(0, True)


def soonest(*deadlines: Deadline) -> Deadline:
    """Return the earliest of some deadlines; it keeps alive if any of them does."""
    found = NEVER
    for deadline in deadlines:
        if found is NEVER:
            found = deadline
        elif deadline is not NEVER:
            time_ns = earliest((found.time_ns, deadline.time_ns))
            found = Deadline(time_ns, found.keeps_alive or deadline.keeps_alive)
    return found


def earliest(times: Iterable[int | None]) -> int | None:
    """Return the earliest time, None if there is none; None among them is never."""
    first = None
    for time in times:
        if time is not None and (first is None or time < first):
            first = time
    return first


class Deadlines(Generic[Key]):
    """One time in nanoseconds for each key. Keys with equal times are taken in the order in which they were set.

    Keys that recur do not keep a simulation running.
    """

    def __init__(self) -> None:
        self.times: dict[Key, int] = {}
        """The time of each key; read-only for others."""
        # Replaced entries stay here until they come up or outnumber the current ones.
        self._heap: list[tuple[int, int, Key]] = []
        self._added = 0
        # The number of each key's current entry.
        self._number: dict[Key, int] = {}
        # The keys that recur.
        self._recurring: set[Key] = set()
        # The last result of `deadline`; an equal one is returned as the same object.
        self._last = NEVER

    def set(self, key: Key, time_ns: int | None, *, recurs: bool = False) -> None:
        """Set a key's time; None, or a time after `MAX_TIME_NS`, removes it."""
        times = self.times
        before = times.get(key)
        if time_ns is None or time_ns > MAX_TIME_NS:
            if before is None:
                return
            del times[key], self._number[key]
            self._recurring.discard(key)
        else:
            if before != time_ns:
                times[key] = time_ns
                number = self._number[key] = self._added = self._added + 1
                heappush(self._heap, (time_ns, number, key))
            if recurs:
                self._recurring.add(key)
            elif self._recurring:
                self._recurring.discard(key)
        if before is not None and len(self._heap) > 2 * len(times) + SLACK:
            self._sweep()

    def set_last(self, key: Key, time_ns: int | None, *, recurs: bool = False) -> None:
        """Set a key's time, after all other keys with that time."""
        if key in self.times:
            self.set(key, None)
        if time_ns is not None:
            self.set(key, time_ns, recurs=recurs)

    def next_time(self) -> int | None:
        """Return the earliest time, None if there is none."""
        heap, numbers = self._heap, self._number
        while heap:
            time_ns, number, key = heap[0]
            if numbers.get(key) == number:
                return time_ns
            heappop(heap)
        return None

    def deadline(self, *, keeps_alive: bool = True) -> Deadline:
        """Return the deadline; with ``keeps_alive`` it keeps alive unless all keys recur."""
        times = self.times
        if not times:
            return NEVER
        first_ns, number, key = self._heap[0]
        time_ns, last = first_ns if self._number.get(key) == number else self.next_time(), self._last
        if self._recurring and len(self._recurring) == len(times):
            keeps_alive = False
        if last.time_ns != time_ns or last.keeps_alive is not keeps_alive:
            last = self._last = Deadline(time_ns, keeps_alive)
        return last

    def take_due(self, now: int) -> Key | None:
        """Remove and return the first key if its time has come, else None."""
        heap, numbers = self._heap, self._number
        # This also drops replaced entries: no current entry precedes the first one.
        while heap and heap[0][0] <= now:
            _, number, key = heappop(heap)
            if numbers.get(key) == number:
                del self.times[key], numbers[key]
                if self._recurring:
                    self._recurring.discard(key)
                return key
        return None

    def _sweep(self) -> None:
        numbers = self._number
        self._heap = [entry for entry in self._heap if numbers.get(entry[2]) == entry[1]]
        heapify(self._heap)


Item = TypeVar("Item")


class Agenda(Generic[Item]):
    """Items by time, then rank, then the order in which they were added."""

    def __init__(self) -> None:
        # Items that were added in order, and the others.
        self._planned: deque[tuple[int, int, int, Item]] = deque()
        self._heap: list[tuple[int, int, int, Item]] = []
        self._added = 0

    def add(self, time_ns: int, item: Item, rank: int = 0) -> None:
        """Add an item for a time; lower ranks come first."""
        self._added += 1
        planned, entry = self._planned, (time_ns, rank, self._added, item)
        if not planned or planned[-1] < entry:
            planned.append(entry)
        else:
            heappush(self._heap, entry)

    def next_time(self) -> int | None:
        """Return the time of the first item, None if there is none."""
        planned, heap = self._planned, self._heap
        if planned and not (heap and heap[0] < planned[0]):
            return planned[0][0]
        return heap[0][0] if heap else None

    def take_due(self, now: int) -> Item | None:
        """Remove and return the first item if its time has come, else None."""
        planned, heap = self._planned, self._heap
        if planned and not (heap and heap[0] < planned[0]):
            return planned.popleft()[3] if planned[0][0] <= now else None
        return heappop(heap)[3] if heap and heap[0][0] <= now else None
