"""A priority queue of pods."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

# The sort key, then the pod's uid: no two current items are equal.
Item = tuple[Any, ...]

SLACK = 32
MANY = 64
"""Larger heaps are sorted as a whole when the first item is taken; the rest is then taken without comparisons."""


class PodHeap:
    """Pods by key, smallest first.

    Sorted items are kept beside the heap, the last one first; later ones go to the heap. Removed items stay until they
    come up, at most as many as current ones (and `SLACK`).
    """

    __slots__ = ("_dead", "_heap", "_live", "_sorted", "uids")

    def __init__(self) -> None:
        self._heap: list[Item] = []
        self._sorted: list[Item] = []
        self._live: dict[str, Item] = {}
        self.uids = self._live.keys()
        """The uids of all pods; a live view."""
        # The number of removed items that are still stored.
        self._dead = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, uid: str) -> bool:
        return uid in self._live

    def __iter__(self) -> Iterator[str]:
        """Return the uids, in no order."""
        return iter(self._live)

    def put(self, item: Item) -> None:
        """Add or move the pod whose uid is the item's last element."""
        live, uid = self._live, item[-1]
        if uid in live:
            self._dead += 1
        live[uid] = item
        heappush(self._heap, item)
        if self._dead > len(live) + SLACK:
            self._sweep()

    def discard(self, uid: str) -> None:
        if self._live.pop(uid, None) is None:
            return
        self._dead += 1
        if self._dead > len(self._live) + SLACK:
            self._sweep()

    def item(self, uid: str) -> Item | None:
        return self._live.get(uid)

    def first(self) -> Item | None:
        heap, in_order, live = self._heap, self._sorted, self._live
        while heap and live.get(heap[0][-1]) is not heap[0]:
            heappop(heap)
            self._dead -= 1
        while in_order and live.get(in_order[-1][-1]) is not in_order[-1]:
            in_order.pop()
            self._dead -= 1
        if not (heap and in_order):
            return heap[0] if heap else in_order[-1] if in_order else None
        return min(heap[0], in_order[-1])

    def pop(self) -> str | None:
        """Remove the first pod and return its uid, or None."""
        heap, in_order, live = self._heap, self._sorted, self._live
        if len(heap) > MANY and len(heap) > len(in_order) // 2:
            in_order += heap
            in_order.sort(reverse=True)
            heap.clear()
        while heap or in_order:
            comes_of_sorted = bool(in_order) and (not heap or in_order[-1] < heap[0])
            item = in_order.pop() if comes_of_sorted else heappop(heap)
            uid: str = item[-1]
            if live.get(uid) is item:
                del live[uid]
                if self._dead > len(live) + SLACK:
                    self._sweep()
                return uid
            self._dead -= 1
        return None

    def take_until(self, last: int) -> list[Item]:
        """Remove the pods whose key begins with ``last`` or less; return their items in order."""
        taken: list[Item] = []
        while (first := self.first()) is not None and first[0] <= last:
            self.pop()
            taken.append(first)
        return taken

    def _sweep(self) -> None:
        self._heap, self._sorted, self._dead = list(self._live.values()), [], 0
        heapify(self._heap)
