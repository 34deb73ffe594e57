"""Values over time, in so many points at most."""

from __future__ import annotations

from typing import Generic, TypeVar

Value = TypeVar("Value")

MOST_POINTS = 500
"""How many points a series keeps; of a longer one every second goes, again and again, the first and last stay."""


class Series(Generic[Value]):
    """What something was from which time on, in nanoseconds; only changes are kept, and of one instant the last."""

    __slots__ = ("_apart_ns", "_most", "_points")

    def __init__(self, most: int = MOST_POINTS) -> None:
        self._most = most
        self._points: list[tuple[int, Value]] = []
        # How far apart points are at least, since there were too many of them.
        self._apart_ns = 0

    def put(self, now: int, value: Value) -> None:
        """Note what holds from now on; times do not go back."""
        points = self._points
        if points and points[-1][1] == value:
            return
        if points and (points[-1][0] == now or (len(points) > 1 and now - points[-2][0] < self._apart_ns)):
            points[-1] = (now, value)
            return
        points.append((now, value))
        if len(points) > self._most:
            self._points = [point for place, point in enumerate(points) if place % 2 == 0 or place == len(points) - 1]
            self._apart_ns = max(2 * self._apart_ns, (now - points[0][0]) // self._most)

    @property
    def points(self) -> list[tuple[int, Value]]:
        """The points by time."""
        return self._points
