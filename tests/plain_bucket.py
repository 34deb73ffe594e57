"""A plain token bucket, the reference implementation."""

from fractions import Fraction


class PlainBucket:
    """The tokens in a bucket, and the time at which they were counted."""

    def __init__(self, count: int, interval_ns: int, now: int = 0) -> None:
        self.count = count
        self.interval_ns = interval_ns
        self._level = Fraction(count)
        self._time = now

    def tokens(self, now: int) -> int:
        self._level = min(Fraction(self.count), self._level + Fraction(now - self._time, self.interval_ns))
        self._time = now
        return int(self._level)

    def take(self, now: int) -> None:
        assert self.tokens(now) > 0
        self._level -= 1

    def next_ns(self, now: int) -> int:
        """Return when there is a token."""
        missing = max(Fraction(0), 1 - self._level) if self.tokens(now) < 1 else Fraction(0)
        return now + int(-(-missing * self.interval_ns // 1))
