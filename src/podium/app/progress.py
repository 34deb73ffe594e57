"""A progress bar on standard error, for runs that take a while in front of somebody."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from podium.api.times import format_duration

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE_SECONDS = 1.0
_REFRESH_SECONDS = 0.1
_SECOND = 10**9


class ProgressBar:
    """Appears when a second has passed, if standard error is a terminal; leaves nothing behind."""

    def __init__(self) -> None:
        self._shown = ExitStack()
        self._bar: Progress | None = None
        self._next = time.monotonic() + _PATIENCE_SECONDS if sys.stderr.isatty() else float("inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._shown.close()

    def update(self, share: float, elapsed_ns: int) -> None:
        """Show the share that is done, from 0 to 1, and the virtual time that has passed."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _REFRESH_SECONDS
        if self._bar is None:
            self._bar = self._shown.enter_context(_new_bar())
            self._bar.add_task("simulating", total=1.0)
        virtual = format_duration(elapsed_ns // _SECOND * _SECOND)
        self._bar.update(self._bar.task_ids[0], completed=share, description=f"simulating, at {virtual}")


def _new_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
