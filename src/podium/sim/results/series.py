"""Values over time, in so many points at most."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

Value = TypeVar("Value")

MOST_POINTS = 500
"""How many points a series keeps; of a longer one every second goes, again and again, the first and last stay."""


class Series(msgspec.Struct, Generic[Value]):
    """What something was from which time on, in nanoseconds; only changes are kept, and of one instant the last.

    `points` are by time, and at most about `most`. They are `apart_ns` apart at least, since there were too many.
    """

    most: int = MOST_POINTS
    points: list[tuple[int, Value]] = []
    apart_ns: int = 0

    def put(self, now: int, value: Value) -> None:
        """Note what holds from now on; times do not go back."""
        points = self.points
        if points:
            since, last = points[-1]
            if last == value:
                return
            if since == now or (self.apart_ns and now - points[-2][0] < self.apart_ns):
                points[-1] = (now, value)
                return
        points.append((now, value))
        if len(points) > self.most:
            self.points = [point for place, point in enumerate(points) if place % 2 == 0 or place == len(points) - 1]
            self.apart_ns = max(2 * self.apart_ns, (now - points[0][0]) // self.most)
