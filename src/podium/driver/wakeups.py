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
        self.quiet_until_ns = MAX_TIME_NS + 1
        """Before this time nothing is due; not to be changed by others."""
        self._due: set[int] = set()
        # When the others are due. A place that is due at once keeps its time here, to which it mostly returns.
        self._times: dict[int, int] = {}
        # What was replaced stays here until it comes up, or there is more of it than of what counts.
        self._later: list[tuple[int, int]] = []

    def set(self, place: int, time_ns: int | None, now: int) -> None:
        """The place is due at that time and no other; None: never."""
        due, later, times = self._due, self._later, self._times
        if time_ns is not None and time_ns <= now:
            due.add(place)
            self.quiet_until_ns = 0
            return
        if place in due:
            due.remove(place)
            if not due:
                self.quiet_until_ns = later[0][0] if later else MAX_TIME_NS + 1
        if times.get(place) == time_ns:
            return
        if time_ns is None:
            del times[place]
            return
        times[place] = time_ns
        self.quiet_until_ns = min(self.quiet_until_ns, time_ns)
        heappush(later, (time_ns, place))
        if len(later) > 2 * len(times) + SLACK:
            self._later = [(time, place) for place, time in times.items()]
            heapify(self._later)

    def first_due(self, now: int) -> int | None:
        """The first place that is due, None for none; it is due until it is set to another time.

        Whoever asks often looks at `quiet_until_ns` before.
        """
        due, later, times = self._due, self._later, self._times
        while later and later[0][0] <= now:
            time_ns, place = heappop(later)
            if times.get(place) == time_ns:
                del times[place]
                due.add(place)
        if due:
            return min(due)
        self.quiet_until_ns = later[0][0] if later else MAX_TIME_NS + 1
        return None

    def next_time(self, now: int) -> int | None:
        """When the next place is due: ``now`` where one is, None for never."""
        if now >= self.quiet_until_ns and self.first_due(now) is not None:
            return now
        later, times = self._later, self._times
        while later and times.get(later[0][1]) != later[0][0]:
            heappop(later)
        return later[0][0] if later else None
