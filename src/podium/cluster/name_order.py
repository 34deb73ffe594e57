"""The order of nodes in which choices among equals are made."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Int64s, UInt64s


class NameOrder:
    """All nodes in the order of their names' hashes: ``rows[rank]``, and ``rank_of[row]`` the other way round.

    It holds for as long as no node comes or goes. Ranks lie in blocks, that of a rank being ``rank >> shift``. A block
    has more ranks than there are blocks: who keeps some ranks by blocks looks at each block to find the one in a place.
    """

    def __init__(self, rows: Int64s, name_hash: UInt64s) -> None:
        in_order: Int64s = rows[np.argsort(name_hash[rows], kind="stable")]
        ranks = np.full(len(name_hash), -1, dtype=np.int64)
        ranks[in_order] = np.arange(len(in_order), dtype=np.int64)
        self.ranks: Int64s = ranks
        self.rows: list[int] = in_order.tolist()
        self.rank_of: list[int] = ranks.tolist()
        self.shift = len(in_order).bit_length() // 2 + 1
        self.blocks = (len(in_order) >> self.shift) + 1
