"""The total of every node for a pod class whose feasible nodes are one cell: the best is found by a look at one array.

Where nodes are few this costs less than a `Ranking`, and what has changed meanwhile is written all at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.name_order import NameOrder
from podium.framework.plugin import NO_FIT


class Totals:
    """Totals in the order of nodes, which are not negative; nodes that the class does not fit have none."""

    __slots__ = ("_entries", "_order", "_totals")

    def __init__(self, order: NameOrder) -> None:
        self._order = order
        self._totals: Int64s = np.full(len(order.rows), NO_FIT, dtype=np.int64)
        # The same memory, for single entries.
        self._entries = self._totals.data

    def write(self, rows: Int64s, feasible: Int64s, totals: Int64s) -> None:
        """Take in some rows: those of them that are feasible, with their totals."""
        ranks = self._order.ranks
        of_rows = ranks[rows]
        # Free rows have no rank.
        self._totals[of_rows[of_rows >= 0]] = NO_FIT
        self._totals[ranks[feasible]] = totals

    def put(self, rows: Sequence[int], totals: Sequence[int]) -> None:
        """Let some rows of nodes that are there have totals, or `NO_FIT`."""
        entries, rank_of = self._entries, self._order.rank_of
        for row, total in zip(rows, totals, strict=True):
            entries[rank_of[row]] = total

    def best(self, lot: int) -> int | None:
        """The row in a place, counted from 0 and round the end, of the order of those with the highest total."""
        totals = self._totals
        highest = self._entries[totals.argmax()] if len(totals) else NO_FIT
        if highest == NO_FIT:
            return None
        places = (totals == highest).nonzero()[0]
        rank: int = places.item(lot % len(places))
        return self._order.rows[rank]
