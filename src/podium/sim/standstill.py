"""Finds components that go on for ever at one instant, so that time stands still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from podium.api.errors import PodiumError

# How often a component may act in vain: some times in any case, and some for each object there is, since a queue of all
# pods may be worked through at one instant.
_SPARE_TICKS = 1_000
_TICKS_AN_OBJECT = 4
# How much may be written at one instant.
_SPARE_WRITES = 100_000
_WRITES_AN_OBJECT = 200


class Standstill:
    """Counts what leads nowhere at one instant. Much that happens at one instant is no fault: no progress is.

    A component has acted in vain when, since it acted before, nothing was written by anybody and it was shown nothing.
    And writes lead nowhere when there are many more of them than objects: some are written over and over again.
    ``count_objects`` is asked only where there is a suspicion.
    """

    def __init__(self, count_objects: Callable[[], int]) -> None:
        self._count_objects = count_objects
        # By component, the version of the store when it last acted, and how often it has acted in vain since.
        self._seen: dict[str, int] = {}
        self._in_vain: Counter[str] = Counter()
        # By component, how many of the writes were its own.
        self._writes: dict[str, int] = {}
        self._written = 0

    def show(self, component: str) -> None:
        """A component is shown something that it did not know."""
        self._seen.pop(component, None)

    def act(self, component: str, version: int) -> None:
        """A component is about to do what is due. Raises PodiumError where nothing has come of it too often."""
        if self._seen.get(component) != version:
            self._seen[component] = version
            if self._in_vain:
                self._in_vain.pop(component, None)
            return
        vain = self._in_vain[component] = self._in_vain[component] + 1
        if vain > _SPARE_TICKS and vain > _SPARE_TICKS + _TICKS_AN_OBJECT * self._count_objects():
            raise PodiumError(f"{component} goes on for ever at one instant: it acted {vain} times and nothing changed")

    def write(self, component: str, count: int) -> None:
        """A component has written something. Raises PodiumError where it goes round in a circle."""
        self._writes[component] = self._writes.get(component, 0) + count
        self._written += count
        if self._written > _SPARE_WRITES and self._written > _SPARE_WRITES + _WRITES_AN_OBJECT * self._count_objects():
            most = max(self._writes, key=lambda name: (self._writes[name], name))
            raise PodiumError(
                f"{most} goes on for ever at one instant: {self._writes[most]} of {self._written} writes are its own"
            )

    def pass_time(self) -> None:
        """Time goes on."""
        self._seen.clear()
        self._in_vain.clear()
        if self._written:
            self._writes.clear()
            self._written = 0
