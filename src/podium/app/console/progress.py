"""A progress bar on standard error, for runs that take a while in front of somebody."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

from podium.api.errors import escape

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE_SECONDS = 0.5
_REFRESH_SECONDS = 0.1
_LONGEST = 200
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
        with _new_bar() as bar:
            task = bar.add_task("", total=None)
            while True:
                share, told = self._share, escape(self._told(), _LONGEST)
                bar.update(task, total=None if share is None else 1.0, completed=share or 0, description=told)
                bar.refresh()
                if self._is_over.wait(_REFRESH_SECONDS):
                    return


def _new_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    # Answers go to standard output untouched; what is told on standard error meanwhile comes above the bar.
    return Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False, redirect_stdout=False)
