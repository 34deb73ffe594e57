"""The nodes that a pod class fits, kept by how good they are, so that a change of one node moves one node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.name_order import NameOrder
from podium.framework.shelf import Shelf

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
        self._shelf_of: list[Shelf | None] = [None] * count
        self.cells: dict[Key, Cell] = {}

    def fill(self, rows: Int64s, totals: Int64s, columns: Sequence[Int64s]) -> None:
        """Put many rows at once, into a ranking without any. All arrays are ``[n]``."""
        by = np.lexsort((totals, *columns))
        table = np.stack([*columns, totals])[:, by]
        starts = np.flatnonzero(np.concatenate([[True], (table[:, 1:] != table[:, :-1]).any(axis=0)]))
        ends = [*starts[1:].tolist(), len(rows)]
        rows = rows[by]
        ranks = self._order.ranks[rows]
        for start, end in zip(starts.tolist() if len(rows) else (), ends, strict=False):
            *key, total = table[:, start].tolist()
            shelf = self._open(tuple(key), total, ranks[start:end].tolist())
            for row in rows[start:end].tolist():
                self._shelf_of[row] = shelf

    def put(self, row: int, key: Key, total: int) -> None:
        """Let a row be in a cell, with a total."""
        shelf = self._shelf_of[row]
        if shelf is not None:
            if shelf.total == total and shelf.cell == key:
                return
            self.remove(row)
        cell = self.cells.get(key)
        found = None if cell is None else cell.shelves.get(total)
        rank = self._order.rank_of[row]
        if cell is None or found is None:
            found = self._open(key, total, (rank,))
        else:
            found.add(rank)
            cell.size += 1
        self._shelf_of[row] = found

    def remove(self, row: int) -> None:
        """Let a row be in no cell; it may be in none already."""
        shelf = self._shelf_of[row]
        if shelf is None:
            return
        self._shelf_of[row] = None
        shelf.remove(self._order.rank_of[row])
        cell = self.cells[shelf.cell]
        cell.size -= 1
        if not cell.size:
            del self.cells[shelf.cell]
        elif not shelf.size:
            cell.drop(shelf)

    def _open(self, key: Key, total: int, ranks: Sequence[int]) -> Shelf:
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
