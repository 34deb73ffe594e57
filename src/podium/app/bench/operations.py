"""Counts what is done, since times depend on the machine."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from podium.api.collector import collector_paused


@collector_paused()
def operations(act: Callable[[], object]) -> Counter[str]:
    """What something takes, by the name of the function: lines of Python that run, and calls of functions in C.

    Each turn of a loop or a comprehension counts its lines anew, so that whatever is done entry by entry grows with the
    entries. An operation on a whole array is one call, however long the array is. Garbage waits meanwhile: what its
    collection calls is no part of what is done.
    """
    found: Counter[str] = Counter()

    def note_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            found[frame.f_code.co_qualname] += 1
        return note_line

    def note_call(_: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            found[getattr(argument, "__qualname__", "")] += 1

    tracing, profiling = sys.gettrace(), sys.getprofile()
    sys.setprofile(note_call)
    sys.settrace(note_line)
    try:
        act()
    finally:
        sys.settrace(tracing)
        sys.setprofile(profiling)
    return found
