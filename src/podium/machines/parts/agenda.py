"""What is to happen at which time."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Agenda(Generic[Item]):
    """Items by time, then rank, then the order in which they were added."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Item]] = []
        self._added = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, time_ns: int, item: Item, rank: int = 0) -> None:
        """Put an item down for a time; the lower rank goes first."""
        self._added += 1
        heappush(self._heap, (time_ns, rank, self._added, item))

    def next_time(self) -> int | None:
        """The time of the first item, None when there is none."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: int) -> Item | None:
        """Remove and return the first item if its time has come, else None."""
        return heappop(self._heap)[3] if self._heap and self._heap[0][0] <= now else None
