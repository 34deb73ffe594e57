"""Time that passes when somebody says so."""

from __future__ import annotations

from podium.api.errors import PodiumError

MOST_LOOKS = 2_000_000


class VirtualClock:
    """Stands still at ``now_ns`` until it is set to a later time.

    Whoever looks at it two million times meanwhile goes on for ever: that is how a component ends that never rests.
    """

    speed = 1.0

    def __init__(self, now_ns: int) -> None:
        self._now_ns = now_ns
        self._looks = 0

    def now(self) -> int:
        """The time, in nanoseconds since 1970. Raises PodiumError where nobody lets it pass."""
        self._looks += 1
        if self._looks > MOST_LOOKS:
            raise PodiumError("the components go on for ever at one instant")
        return self._now_ns

    def set(self, now_ns: int) -> None:
        """Let time pass up to then. Raises ValueError for a time that is over."""
        if now_ns < self._now_ns:
            raise ValueError("time does not go back")
        self._looks = 0
        self._now_ns = now_ns

    def seconds_until(self, time_ns: int) -> float | None:
        """0 for a time that has come; None for any other, for which nobody can wait."""
        return 0.0 if time_ns <= self._now_ns else None

    def wait(self, until_ns: int | None) -> None:
        """Let time pass up to then; it does not pass for what never comes."""
        if until_ns is not None and until_ns > self._now_ns:
            self.set(until_ns)

    def wake(self) -> None:
        """Nobody waits."""
