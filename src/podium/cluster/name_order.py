"""The order of nodes in which choices among equals are made."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Int64s, UInt64s


class NameOrder:
    """All nodes in the order of their names' hashes: ``rows[rank]``, and ``rank_of[row]`` the other way round.

    It holds for as long as no node comes or goes. Ranks lie in blocks, that of a rank being ``rank >> shift``. Who
    keeps some ranks by blocks looks at each block to find the one in a place, and moves the ranks of a block when one
    of them comes or goes. Blocks are at most 64, since to move a thousand numbers costs no more than to look at a few.
    """

    def __init__(self, rows: Int64s, name_hash: UInt64s) -> None:
        in_order: Int64s = rows[_ascending(name_hash[rows])]
        ranks = np.full(len(name_hash), -1, dtype=np.int64)
        ranks[in_order] = np.arange(len(in_order), dtype=np.int64)
        self.ranks: Int64s = ranks
        self.rows = in_order.data
        self.rank_of = ranks.data
        bits = len(in_order).bit_length()
        self.shift = max(bits - 6, min(bits // 2 + 1, 6))
        self.blocks = (len(in_order) >> self.shift) + 1


def _ascending(hashes: UInt64s) -> Int64s:
    """The places of hashes in their order; of equal ones, which hardly ever are, the first comes first.

    The upper bits of a hash tell it from all others as a rule. Its place then goes into the others, since numbers are
    sorted in a fraction of the time that it takes to sort places by them.
    """
    bits = len(hashes).bit_length()
    packed = hashes >> bits
    packed <<= bits
    packed |= np.arange(len(hashes), dtype=np.uint64)
    packed.sort()
    order: Int64s = (packed & ((1 << bits) - 1)).view(np.int64)
    packed >>= bits
    if (packed[1:] == packed[:-1]).any():
        order = np.argsort(hashes, kind="stable")
    return order
