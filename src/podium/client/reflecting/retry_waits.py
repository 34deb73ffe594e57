"""How long a reflector waits after failures.

Source: k8s.io/client-go/tools/cache/reflector.go (the back-off of NewReflectorWithOptions).
"""

from __future__ import annotations

from random import Random

_SECOND = 10**9
FIRST_WAIT_NS, LONGEST_WAIT_NS = 800_000_000, 30 * _SECOND
# After two minutes without a failure waits begin anew.
_FORGET_NS = 120 * _SECOND


class RetryWaits:
    """After each failure twice as long as after the one before, and up to twice that by chance.

    Nothing is to be asked for before ``until_ns``.
    """

    def __init__(self, random: Random) -> None:
        self.until_ns = 0
        self._random = random
        self._failures = 0
        self._failed_ns = 0

    def fail(self, now: int, least_ns: int = 0) -> None:
        """Wait before the next request, for ``least_ns`` at the least."""
        if now - self._failed_ns > _FORGET_NS:
            self._failures = 0
        wait_ns = min(FIRST_WAIT_NS << min(self._failures, 10), LONGEST_WAIT_NS)
        self._failures += 1
        self._failed_ns = now
        wait_ns += int(self._random.random() * wait_ns)
        self.until_ns = now + max(wait_ns, least_ns)
