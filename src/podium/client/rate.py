"""How many requests a second are sent.

Source: k8s.io/client-go/util/flowcontrol (throttle.go).
"""

from __future__ import annotations

_SECOND = 10**9


class RequestRate:
    """A bucket of ``burst`` tokens into which ``per_second`` come; with 0 there is no limit."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._interval_ns = int(_SECOND / per_second) if per_second > 0 else 0
        self._most_ns = self._interval_ns * max(1, burst)
        # When the bucket was, or will be, full but for the tokens that were taken.
        self._full_ns = 0

    def take(self, now: int) -> int:
        """Take a token; how long to wait, in nanoseconds, before what it is for is sent."""
        if not self._interval_ns:
            return 0
        self._full_ns = max(self._full_ns, now) + self._interval_ns
        return max(0, self._full_ns - self._most_ns - now)
