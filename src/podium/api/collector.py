"""Control of Python's cyclic garbage collector for code that creates many objects and few cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000


@contextmanager
def collector_paused(*, keeps_objects: bool = False) -> Iterator[None]:
    """Disable the collector, which frees nothing during a load or a simulation and multiplies their duration.

    With `keeps_objects` the new objects stay as long as the process, if it has called `settle_collector`: otherwise the
    collector would examine all of them as soon as it is enabled.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if keeps_objects and gc.get_threshold()[0] == _NEW_OBJECTS:
            gc.freeze()
        if was_enabled:
            gc.enable()


def settle_collector() -> None:
    """Configure the collector for a long-running program: ignore existing objects, and scan new ones less often.

    Such a program creates many objects and few cycles. Python's default threshold is 700 new objects.
    """
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)


def free_cycles() -> None:
    """Collect cycles, such as those of a finished simulation, before more memory is needed."""
    gc.collect()
