"""A progress bar on standard error, for runs that take a while in front of somebody."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

_PATIENCE_SECONDS = 0.5
_REFRESH_SECONDS = 0.1
# When the command began, or the first bar where no command did.
_began: list[float] = []


def command_begins() -> None:
    """Count from now on how long somebody has waited."""
    _began[:] = [time.monotonic()]


def is_watched() -> bool:
    """Whether somebody sees bars: standard error is a terminal that can wipe a line away."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class ProgressBar:
    """Says what is being done, if standard error is a terminal; leaves nothing behind.

    It appears when half a second has passed since the command began, so that one thing after the other need not be long
    for itself. A thread draws it, whether something is told meanwhile or not. Only one may be there at a time.
    """

    def __init__(self, what: str) -> None:
        self._share: float | None = None
        self._told: Callable[[], str] = lambda: what
        self._is_over = Event()
        self._thread = Thread(target=self._draw, daemon=True) if is_watched() else None

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def update(self, share: float, told: Callable[[], str]) -> None:
        """Show the share that is done, from 0 to 1, and what is being done, which is asked for when it is shown."""
        self._share, self._told = share, told

    def _draw(self) -> None:
        if not _began:
            command_begins()
        if self._is_over.wait(max(_began[0] + _PATIENCE_SECONDS - time.monotonic(), 0)):
            return
        # Not before somebody has waited: what is done at once needs no line.
        from podium.app.console.status_line import StatusLine

        with StatusLine() as line:
            while True:
                line.draw(self._told(), self._share)
                if self._is_over.wait(_REFRESH_SECONDS):
                    return
