"""The time, in nanoseconds since 1970: real time, or one that is set."""

from __future__ import annotations

import time

from podium.api.errors import PodiumError


class SystemClock:
    """The system clock, advanced by the monotonic clock and thus unaffected by later changes of the system time.

    It runs at ``speed`` times real time, and starts no earlier than ``earliest_ns``.
    """

    def __init__(self, speed: float = 1.0, earliest_ns: int = 0) -> None:
        self.speed = speed
        self._began_ns = max(time.time_ns(), earliest_ns)
        self._started_ns = time.monotonic_ns()

    def now(self) -> int:
        """Return the time; it never goes back."""
        elapsed_ns = time.monotonic_ns() - self._started_ns
        return self._began_ns + (elapsed_ns if self.speed == 1 else int(elapsed_ns * self.speed))

    def seconds_until(self, time_ns: int) -> float:
        """Return the real time in seconds until that time; 0 if it has passed."""
        return max(0.0, (time_ns - self.now()) / 10**9 / self.speed)


MAX_READS = 2_000_000


class VirtualClock:
    """A clock that stands at ``now_ns`` until it is set to a later time.

    After two million reads without an advance it raises an error: that stops a component which never becomes idle.
    """

    speed = 1.0

    def __init__(self, now_ns: int) -> None:
        self._now_ns = now_ns
        self._looks = 0

    def now(self) -> int:
        """Return the time. Raises PodiumError after too many reads without an advance."""
        self._looks += 1
        if self._looks > MAX_READS:
            raise PodiumError("the components go on for ever at one instant")
        return self._now_ns

    def set(self, now_ns: int) -> None:
        """Advance to that time. Raises ValueError for an earlier time."""
        if now_ns < self._now_ns:
            raise ValueError("time does not go back")
        self._looks = 0
        self._now_ns = now_ns

    def seconds_until(self, time_ns: int) -> float | None:
        """Return 0 for a time that has passed; None for any other, because it never comes by waiting."""
        return 0.0 if time_ns <= self._now_ns else None


Clock = SystemClock | VirtualClock
