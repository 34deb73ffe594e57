"""A progress bar on standard error, for commands that take a while on a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

from podium.api.errors import escape

_PATIENCE_SECONDS = 0.5
_REFRESH_SECONDS = 0.1
_LONGEST = 200
# When the command began, or the first bar if no command did.
_began: list[float] = []


def command_begins() -> None:
    """Start the clock that decides when the first progress bar appears."""
    _began[:] = [time.monotonic()]


def is_watched() -> bool:
    """Return whether bars are visible: standard error is a terminal that can erase a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class ProgressBar:
    """A progress bar with a description, if standard error is a terminal; it is erased at the end.

    It appears half a second after the command began, even if each single step is short. A thread draws it, with or
    without updates. Only one bar may exist at a time.
    """

    def __init__(self, what: str) -> None:
        self._share: float | None = None
        self._describe: Callable[[], str] = lambda: what
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

    def update(self, share: float, describe: Callable[[], str]) -> None:
        """Show the completed share, from 0 to 1, and a description, computed when the bar is drawn."""
        self._share, self._describe = share, describe

    def _draw(self) -> None:
        if not _began:
            command_begins()
        if self._is_over.wait(max(_began[0] + _PATIENCE_SECONDS - time.monotonic(), 0)):
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        # Answers go to standard output unchanged; messages on standard error appear above the bar.
        with Progress(*columns, console=console, transient=True, auto_refresh=False, redirect_stdout=False) as bar:
            task = bar.add_task("", total=None)
            while True:
                share, description = self._share, escape(self._describe(), _LONGEST)
                bar.update(task, total=None if share is None else 1.0, completed=share or 0, description=description)
                bar.refresh()
                if self._is_over.wait(_REFRESH_SECONDS):
                    return
