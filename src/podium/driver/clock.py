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
    """The machine's clock. It goes on evenly from where it stood at first, whoever sets it meanwhile."""

    def __init__(self) -> None:
        self._began_ns = time.time_ns() - time.monotonic_ns()
        self._woken = threading.Event()

    def now(self) -> int:
        """See `Clock`."""
        return self._began_ns + time.monotonic_ns()

    def wait(self, until_ns: int | None) -> None:
        """See `Clock`."""
        seconds = None if until_ns is None else max(0.0, (until_ns - self.now()) / 10**9)
        self._woken.wait(None if seconds is None else min(seconds, threading.TIMEOUT_MAX))
        self._woken.clear()

    def wake(self) -> None:
        """See `Clock`."""
        self._woken.set()
