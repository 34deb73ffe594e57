"""Real time."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """The time, and waiting for it; in nanoseconds since 1970."""

    def now(self) -> int:
        """The time; it does not go back."""
        ...

    def wait(self, until_ns: int | None) -> None:
        """Return when that time has come, or somebody has called `wake` since the last wait; None: when they have."""
        ...

    def wake(self) -> None:
        """End the wait of another thread, or the next one."""
        ...


class SystemClock:
    """The machine's clock. It goes on evenly from where it stood at first, whoever sets it meanwhile.

    It goes ``speed`` times as fast, and begins no earlier than ``earliest_ns``.
    """

    def __init__(self, speed: float = 1.0, earliest_ns: int = 0) -> None:
        self.speed = speed
        self._began_ns = max(time.time_ns(), earliest_ns)
        self._started_ns = time.monotonic_ns()
        self._woken = threading.Event()

    def now(self) -> int:
        """See `Clock`."""
        elapsed_ns = time.monotonic_ns() - self._started_ns
        return self._began_ns + (elapsed_ns if self.speed == 1 else int(elapsed_ns * self.speed))

    def seconds_until(self, time_ns: int) -> float:
        """How long it really takes until that time has come; 0 where it has."""
        return max(0.0, (time_ns - self.now()) / 10**9 / self.speed)

    def wait(self, until_ns: int | None) -> None:
        """See `Clock`."""
        seconds = None if until_ns is None else self.seconds_until(until_ns)
        self._woken.wait(None if seconds is None else min(seconds, threading.TIMEOUT_MAX))
        self._woken.clear()

    def wake(self) -> None:
        """See `Clock`."""
        self._woken.set()
