"""A progress bar on standard error, for runs that take a while in front of somebody."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE_SECONDS = 1.0
_REFRESH_SECONDS = 0.1


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

    def update(self, share: float, told: Callable[[], str]) -> None:
        """Show the share that is done, from 0 to 1, and what is being done, which is asked for when it is shown."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _REFRESH_SECONDS
        if self._bar is None:
            self._bar = self._shown.enter_context(_new_bar())
            self._bar.add_task(told(), total=1.0)
        self._bar.update(self._bar.task_ids[0], completed=share, description=told())


def _new_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
