"""The nodes that a pod class fits, kept by how good they are, so that a change of one node moves one node."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.cluster.arrays import Int64s, in_order_of
from podium.cluster.name_order import NameOrder
from podium.framework.kept.shelf import Shelf

Key = tuple[int, ...]


class Cell:
    """The feasible nodes that plugins of scope CLUSTER do not tell apart, by total. ``top`` holds the best of them."""

    __slots__ = ("shelves", "size", "top")

    def __init__(self, shelf: Shelf) -> None:
        self.shelves = {shelf.total: shelf}
        self.top = shelf
        self.size = 0

    def drop(self, shelf: Shelf) -> None:
        """Forget a shelf that is empty, which is not the last one."""
        del self.shelves[shelf.total]
        if self.top is shelf:
            self.top = self.shelves[max(self.shelves)]


class Ranking:
    """Nodes by cell, and there by total."""

    def __init__(self, order: NameOrder, count: int) -> None:
        self._order = order
        self._rank_of = order.rank_of
        self._shelf_of: npt.NDArray[Any] = np.full(count, None, dtype=object)
        self.cells: dict[Key, Cell] = {}

    def fill(self, rows: Int64s, totals: Int64s, columns: Sequence[Int64s]) -> None:
        """Put many rows at once, into a ranking without any. All arrays are ``[n]``."""
        ranks = self._order.ranks[rows]
        by = in_order_of(*columns, totals, ranks)
        rows, ranks, table = rows[by], ranks[by], [column[by] for column in (*columns, totals)]
        differs = np.zeros(max(len(rows) - 1, 0), dtype=np.bool_)
        for column in table:
            differs |= column[1:] != column[:-1]
        bounds = np.flatnonzero(differs) + 1
        for start, end in pairwise([0, *bounds.tolist(), len(rows)] if len(rows) else ()):
            *key, total = [column.item(start) for column in table]
            self._shelf_of[rows[start:end]] = self._open(tuple(key), total, ranks[start:end])

    def put(self, row: int, key: Key, total: int) -> None:
        """Let a row be in a cell, with a total."""
        shelf: Shelf | None = self._shelf_of[row]
        rank = self._rank_of[row]
        if shelf is not None:
            if shelf.total == total and shelf.cell == key:
                return
            self._take(shelf, rank)
        cell = self.cells.get(key)
        found = None if cell is None else cell.shelves.get(total)
        if cell is None or found is None:
            found = self._open(key, total, np.array([rank]))
        else:
            found.add(rank)
            cell.size += 1
        self._shelf_of[row] = found

    def remove(self, row: int) -> None:
        """Let a row be in no cell; it may be in none already."""
        shelf: Shelf | None = self._shelf_of[row]
        if shelf is not None:
            self._shelf_of[row] = None
            self._take(shelf, self._rank_of[row])

    def _take(self, shelf: Shelf, rank: int) -> None:
        """Take a row, by its rank, off its shelf."""
        shelf.remove(rank)
        cell = self.cells[shelf.cell]
        cell.size -= 1
        if not cell.size:
            del self.cells[shelf.cell]
        elif not shelf.size:
            cell.drop(shelf)

    def _open(self, key: Key, total: int, ranks: Int64s) -> Shelf:
        """A shelf that is not there yet, with some nodes."""
        shelf = Shelf(self._order, key, total, ranks)
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = Cell(shelf)
        else:
            cell.shelves[total] = shelf
            if total > cell.top.total:
                cell.top = shelf
        cell.size += shelf.size
        return shelf
