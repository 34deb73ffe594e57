"""Which components are due, in the order of their places."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from podium.api.times import MAX_TIME_NS
from podium.machines.parts.deadlines import SLACK


class Wakeups:
    """One time for each place, in nanoseconds; of several places that are due the smallest number goes first.

    Times do not go back, so that a place which is due stays so until it is set to another time.
    """

    def __init__(self) -> None:
        self.quiet_until_ns = 0
        """Before this time nothing is due; not to be changed by others."""
        self._times: dict[int, int] = {}
        # What is due later; what was replaced stays here until it comes up, or there is more of it than of what counts.
        self._later: list[tuple[int, int]] = []
        # All that is due but what stands in `_later` still, and what was replaced there and has come up.
        self._due: set[int] = set()

    def set(self, place: int, time_ns: int | None, now: int) -> None:
        """The place is due at that time and no other; None: never."""
        times = self._times
        if times.get(place) == time_ns:
            return
        if time_ns is None:
            del times[place]
            self._due.discard(place)
            return
        times[place] = time_ns
        self.quiet_until_ns = min(self.quiet_until_ns, time_ns)
        if time_ns <= now:
            self._due.add(place)
            return
        self._due.discard(place)
        heappush(self._later, (time_ns, place))
        if len(self._later) > 2 * len(times) + SLACK:
            self._later = [(time, place) for place, time in times.items() if place not in self._due]
            heapify(self._later)

    def first_due(self, now: int) -> int | None:
        """The first place that is due, None for none; it is due until it is set to another time.

        Whoever asks often looks at `quiet_until_ns` before.
        """
        later, due = self._later, self._due
        while later and later[0][0] <= now:
            due.add(heappop(later)[1])
        while due:
            place = min(due)
            time_ns = self._times.get(place)
            if time_ns is not None and time_ns <= now:
                return place
            due.discard(place)
        self.quiet_until_ns = later[0][0] if later else MAX_TIME_NS + 1
        return None

    def next_time(self, now: int) -> int | None:
        """When the next place is due: ``now`` or earlier where one is, None for never."""
        place = None if now < self.quiet_until_ns else self.first_due(now)
        if place is not None:
            return self._times[place]
        later, times = self._later, self._times
        while later and times.get(later[0][1]) != later[0][0]:
            heappop(later)
        return later[0][0] if later else None
