"""Work in a forked copy of this process."""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

Report = Callable[..., None]

_REPORT_SECONDS = 0.2
_REPORT, _RESULT = "report", "result"


def throttled(report: Report) -> Report:
    """Return a function that reports progress a few times per second, and ignores calls in between."""
    next_s = -math.inf

    def report_now_and_then(*progress: Any) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _REPORT_SECONDS
            report(*progress)

    return report_now_and_then


def _serve(ours: Connection, theirs: Connection, work: Callable[[Any, Report], Any]) -> None:
    # Otherwise the copy would keep the pipe open whose end it has to notice.
    ours.close()
    report = throttled(lambda *progress: theirs.send((_REPORT, progress)))
    try:
        theirs.send((_RESULT, work(theirs.recv(), report)))
    except BaseException:  # The parent meets the same error when it does the work itself
        theirs.close()


@contextmanager
def forked(work: Callable[[Any, Report], Any]) -> Iterator[Callable[[Any], Callable[[Report | None], Any]]]:
    """Fork a copy of this process that waits for an argument and then computes a result from its own state.

    Yield the function that sends the argument. It returns the one that waits for the result, None if the copy has
    failed: the caller then does the work itself. The copy reports its progress a few times a second. It shares memory
    with its parent until one of them writes, and ends with its parent, or with the context. Use it only if no other
    thread holds locks that the work needs.
    """
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_serve, args=(ours, theirs, work), daemon=True)
    process.start()
    theirs.close()

    def begin(argument: Any) -> Callable[[Report | None], Any]:
        # If the copy has ended, receiving fails, too.
        with suppress(OSError):
            ours.send(argument)
        return finish

    def finish(report: Report | None) -> Any:
        try:
            while True:
                kind, value = ours.recv()
                if kind == _RESULT:
                    return value
                if report is not None:
                    report(*value)
        except (EOFError, OSError):
            return None

    try:
        yield begin
    finally:
        ours.close()
        process.kill()
        process.join()
        process.close()
