"""The total of every node for a pod class whose feasible nodes are one cell: the best is found by a look at one array.

Where nodes are few this costs less than a `Ranking`, and what has changed meanwhile is written all at once.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.name_order import NameOrder

_INFEASIBLE = -1


class Totals:
    """Totals in the order of nodes, which are not negative; nodes that the class does not fit have none."""

    __slots__ = ("_entries", "_order", "_totals")

    def __init__(self, order: NameOrder) -> None:
        self._order = order
        self._totals: Int64s = np.full(len(order.rows), _INFEASIBLE, dtype=np.int64)
        # The same memory, for single entries.
        self._entries = self._totals.data

    def write(self, rows: Int64s, feasible: Int64s, totals: Int64s) -> None:
        """Take in some rows: those of them that are feasible, with their totals."""
        ranks = self._order.ranks
        of_rows = ranks[rows]
        # Free rows have no rank.
        self._totals[of_rows[of_rows >= 0]] = _INFEASIBLE
        self._totals[ranks[feasible]] = totals

    def put(self, row: int, total: int | None) -> None:
        """Let a row have a total, or none."""
        rank = self._order.rank_of[row]
        if rank >= 0:
            self._entries[rank] = _INFEASIBLE if total is None else total

    def best(self, lot: int) -> int | None:
        """The row in a place, counted from 0 and round the end, of the order of those with the highest total."""
        totals = self._totals
        highest = self._entries[totals.argmax()] if len(totals) else _INFEASIBLE
        if highest == _INFEASIBLE:
            return None
        places = (totals == highest).nonzero()[0]
        rank: int = places.item(lot % len(places))
        return self._order.rows[rank]
