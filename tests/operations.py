"""Counts what is done, since times depend on the machine."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType


def operations(act: Callable[[], object]) -> Counter[str]:
    """The calls, and the turns of generators, that something takes: Python's and those of C, by name."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            found[frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name] += 1
        elif event == "c_call":
            found[getattr(argument, "__qualname__", "")] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return found
