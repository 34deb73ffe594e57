"""What is to happen at which time."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Agenda(Generic[Item]):
    """Items by time, then rank, then the order in which they were added."""

    def __init__(self) -> None:
        # Items that were added in their order, as plans are, and those that were not.
        self._planned: deque[tuple[int, int, int, Item]] = deque()
        self._heap: list[tuple[int, int, int, Item]] = []
        self._added = 0

    def __len__(self) -> int:
        return len(self._planned) + len(self._heap)

    def add(self, time_ns: int, item: Item, rank: int = 0) -> None:
        """Put an item down for a time; the lower rank goes first."""
        self._added += 1
        planned, entry = self._planned, (time_ns, rank, self._added, item)
        if not planned or planned[-1] < entry:
            planned.append(entry)
        else:
            heappush(self._heap, entry)

    def next_time(self) -> int | None:
        """The time of the first item, None when there is none."""
        planned, heap = self._planned, self._heap
        if planned and not (heap and heap[0] < planned[0]):
            return planned[0][0]
        return heap[0][0] if heap else None

    def take_due(self, now: int) -> Item | None:
        """Remove and return the first item if its time has come, else None."""
        planned, heap = self._planned, self._heap
        if planned and not (heap and heap[0] < planned[0]):
            return planned.popleft()[3] if planned[0][0] <= now else None
        return heappop(heap)[3] if heap and heap[0][0] <= now else None
