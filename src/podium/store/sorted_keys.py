"""The keys of a kind's objects in their order, which is kept as they come and go."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

_FEW = 64
"""Up to so many changes are put in their places one by one; more are sorted in together."""


class SortedKeys:
    """Keys by their order as texts, those of a namespace therefore side by side.

    A key that comes or goes is noted, and put in its place when somebody asks for the order: writers who list nothing
    pay nothing for it.
    """

    __slots__ = ("_added", "_gone", "_sorted")

    def __init__(self) -> None:
        self._sorted: list[str] = []
        # What has changed since they were sorted: keys that are not among them, and keys that are.
        self._added: dict[str, None] = {}
        self._gone: set[str] = set()

    def add(self, key: str) -> None:
        """Take in a key that is not there."""
        if key in self._gone:
            self._gone.remove(key)
        else:
            self._added[key] = None

    def remove(self, key: str) -> None:
        """Let go of a key that is there."""
        if key in self._added:
            del self._added[key]
        else:
            self._gone.add(key)

    def span(self, namespace: str = "", after: str = "") -> tuple[int, int]:
        """Where the keys of a namespace, or for "" all keys, begin and end; `after` leaves out those up to it."""
        keys = self._settled()
        if not namespace:
            return bisect_right(keys, after) if after else 0, len(keys)
        first = bisect_left(keys, f"{namespace}/")
        # "0" is what follows "/".
        end = bisect_left(keys, f"{namespace}0", first)
        return max(first, bisect_right(keys, after, first, end)) if after else first, end

    def between(self, begin: int, end: int) -> list[str]:
        """The keys of a part of the order, which `span` names."""
        return self._settled()[begin:end]

    def walk(self, begin: int, end: int) -> Iterator[str]:
        """The same one by one, for those who may stop early; none may come or go meanwhile."""
        keys = self._settled()
        return (keys[index] for index in range(begin, min(end, len(keys))))

    def _settled(self) -> list[str]:
        if self._added or self._gone:
            self._settle()
        return self._sorted

    def _settle(self) -> None:
        keys = self._sorted
        if len(self._added) + len(self._gone) <= _FEW:
            for key in self._gone:
                del keys[bisect_left(keys, key)]
            for key in self._added:
                keys.insert(bisect_left(keys, key), key)
        else:
            if self._gone:
                keys = [key for key in keys if key not in self._gone]
            keys.extend(self._added)
            keys.sort()
            self._sorted = keys
        self._added.clear()
        self._gone.clear()
