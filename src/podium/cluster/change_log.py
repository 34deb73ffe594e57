"""Which rows changed, in order, so that a cache can ask what it missed."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Int64s


class ChangeLog:
    """An append-only list of changed rows with a bounded memory.

    A reader keeps the position up to which it is current, and asks for the rows changed since.
    """

    def __init__(self, limit: int = 4096) -> None:
        self._rows: list[int] = []
        self._base = 0
        self._limit = limit

    @property
    def position(self) -> int:
        """The position after the newest change."""
        return self._base + len(self._rows)

    def touch(self, row: int) -> None:
        """Note that ``row`` changed."""
        self._rows.append(row)
        if len(self._rows) > 2 * self._limit:
            del self._rows[: self._limit]
            self._base += self._limit

    def since(self, position: int) -> Int64s | None:
        """The distinct rows changed after ``position``, ascending; None when the log no longer reaches back."""
        if position < self._base:
            return None
        missed = self._rows[position - self._base :]
        if len(missed) < 2:
            return np.array(missed, dtype=np.int64)
        return np.array(sorted(set(missed)), dtype=np.int64)
