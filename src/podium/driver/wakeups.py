"""Which components are due, in the order of their places."""

from __future__ import annotations

from heapq import heappop, heappush

from podium.api.times import MAX_TIME_NS
from podium.machines.parts.deadlines import Deadlines


class Wakeups:
    """One time for each place, in nanoseconds; of several places that are due the smallest number goes first.

    Times do not go back, so that a place which is due stays so until it is set to another time.
    """

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        self._later: Deadlines[int] = Deadlines()
        # Places that were due, each once; those that are not any more are dropped when they come up.
        self._due: list[int] = []
        self._is_among_due: set[int] = set()
        # Before this time nothing is due.
        self._quiet_until_ns = 0

    def set(self, place: int, time_ns: int | None, now: int) -> None:
        """The place is due at that time and no other; None: never."""
        if self._times.get(place) == time_ns:
            return
        if time_ns is None:
            del self._times[place]
            self._later.set(place, None)
            return
        self._times[place] = time_ns
        self._quiet_until_ns = min(self._quiet_until_ns, time_ns)
        if time_ns > now:
            self._later.set(place, time_ns)
        else:
            self._later.set(place, None)
            self._add(place)

    def first_due(self, now: int) -> int | None:
        """The first place that is due, None for none. It is due until it is set to another time."""
        if now < self._quiet_until_ns:
            return None
        while (place := self._later.take_due(now)) is not None:
            self._add(place)
        while self._due:
            place = self._due[0]
            time_ns = self._times.get(place)
            if time_ns is not None and time_ns <= now:
                return place
            heappop(self._due)
            self._is_among_due.discard(place)
        next_ns = self._later.next_time()
        self._quiet_until_ns = MAX_TIME_NS + 1 if next_ns is None else next_ns
        return None

    def next_time(self, now: int) -> int | None:
        """When the next place is due: ``now`` or earlier where one is, None for never."""
        place = self.first_due(now)
        return self._later.next_time() if place is None else self._times[place]

    def _add(self, place: int) -> None:
        if place not in self._is_among_due:
            self._is_among_due.add(place)
            heappush(self._due, place)
