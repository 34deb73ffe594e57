"""What changed, in order, so that a cache can ask what it missed."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from podium.cluster.arrays import Int64s

Entry = TypeVar("Entry")


class BoundedLog(Generic[Entry]):
    """An append-only list with a bounded memory: of the last ``limit`` entries, and at times of as many before them.

    A reader keeps the position up to which it is current, and asks for what came after it.
    """

    def __init__(self, limit: int) -> None:
        self._entries: list[Entry] = []
        self._base = 0
        self._limit = limit
        # At that position the oldest entries are forgotten.
        self._full_at = 2 * limit + 1
        self.position = 0
        """The position after the newest entry."""

    def append(self, entry: Entry) -> None:
        """Add an entry."""
        self._entries.append(entry)
        self.position += 1
        if self.position == self._full_at:
            del self._entries[: self._limit]
            self._base += self._limit
            self._full_at += self._limit

    def entries_since(self, position: int) -> list[Entry] | None:
        """The entries after ``position``; None when the log no longer reaches back."""
        return None if position < self._base else self._entries[position - self._base :]


class ChangeLog(BoundedLog[int]):
    """Which rows changed."""

    def __init__(self, limit: int = 4096) -> None:
        super().__init__(limit)

    touch = BoundedLog[int].append
    """Note that a row changed."""

    def since(self, position: int) -> Int64s | None:
        """The distinct rows changed after ``position``, ascending; None when the log no longer reaches back."""
        missed = self.entries_since(position)
        if missed is None:
            return None
        if len(missed) < 2:
            return np.array(missed, dtype=np.int64)
        return np.array(sorted(set(missed)), dtype=np.int64)
