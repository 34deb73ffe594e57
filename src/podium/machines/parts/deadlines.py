"""When each of many things is due."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

import msgspec

from podium.api.times import MAX_TIME_NS

Key = TypeVar("Key")

SLACK = 32


class Deadline(msgspec.Struct, frozen=True, gc=False):
    """When something is next due, and whether news is to be expected.

    ``time_ns`` 0 means at once, None that nothing is due. ``is_news``: something is likely to happen, then or later,
    that has not happened before. What will only be tried once more, and what is done from time to time whatever
    happens, is no news; what somebody else is known to be about to do is some, though nothing is due.
    """

    time_ns: int | None
    is_news: bool


NEVER = Deadline(None, False)
AT_ONCE = Deadline(0, True)


def soonest(*deadlines: Deadline) -> Deadline:
    """When the first of several is due, and whether news is to be expected of any."""
    found = NEVER
    for deadline in deadlines:
        if deadline is not NEVER:
            found = deadline if found is NEVER else _sooner(found, deadline)
    return found


def earliest(times: Iterable[int | None]) -> int | None:
    """The first of some times, None where there is none; None among them stands for never."""
    first = None
    for time in times:
        if time is not None and (first is None or time < first):
            first = time
    return first


def _sooner(one: Deadline, other: Deadline) -> Deadline:
    return Deadline(earliest((one.time_ns, other.time_ns)), one.is_news or other.is_news)


class Deadlines(Generic[Key]):
    """One time for each key, in nanoseconds; another replaces it. Keys of one time are taken in the order set.

    Of each key it is known whether it will be due again and again: that what recurs is due is no news.
    """

    def __init__(self) -> None:
        self.times: dict[Key, int] = {}
        """When each key is due; not to be changed by others."""
        # What was replaced stays here until it comes up, or there is more of it than of what counts.
        self._heap: list[tuple[int, int, Key]] = []
        self._added = 0
        # The number of the entry of each key that counts.
        self._number: dict[Key, int] = {}
        # Those of the keys with a time that recur.
        self._recurring: set[Key] = set()
        # What was told last: nobody need look at what is the same again.
        self._told = NEVER

    def all_keys(self) -> list[Key]:
        """All that is due at some time."""
        return list(self.times)

    def set(self, key: Key, time_ns: int | None, *, recurs: bool = False) -> None:
        """The key is due at that time and no other; None, and what comes after the last time that there is: never."""
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
        # Where the key had no time before there is no more than before of what was replaced.
        if before is not None and len(self._heap) > 2 * len(times) + SLACK:
            self._sweep()

    def set_last(self, key: Key, time_ns: int | None, *, recurs: bool = False) -> None:
        """The key is due at that time, and the last of those that are due then, even where it was due then before."""
        if key in self.times:
            self.set(key, None)
        if time_ns is not None:
            self.set(key, time_ns, recurs=recurs)

    def next_time(self) -> int | None:
        """The first time, None when nothing is ever due."""
        heap, numbers = self._heap, self._number
        while heap:
            time_ns, number, key = heap[0]
            if numbers.get(key) == number:
                return time_ns
            heappop(heap)
        return None

    def deadline(self, *, is_news: bool = True) -> Deadline:
        """When the first is due; ``is_news``: what is due here is news, but for what recurs."""
        times = self.times
        if not times:
            return NEVER
        first_ns, number, key = self._heap[0]
        time_ns, told = first_ns if self._number.get(key) == number else self.next_time(), self._told
        if self._recurring and len(self._recurring) == len(times):
            is_news = False
        if told.time_ns != time_ns or told.is_news is not is_news:
            told = self._told = Deadline(time_ns, is_news)
        return told

    def take_due(self, now: int) -> Key | None:
        """Remove and return the first key if its time has come, else None."""
        heap, numbers = self._heap, self._number
        # What was replaced goes as well: nothing that counts comes before the first entry.
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
