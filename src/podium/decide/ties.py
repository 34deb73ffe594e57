"""Choosing among equals: evenly spread over the choices, and the same every time.

kube-scheduler draws lots here. We order equals by a hash of the seed, the pod's uid and the node's name, so that
different pods prefer different nodes and a run can be repeated.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s, scrambled, stable_hash
from podium.cluster.nodes import NodeColumns


def pick(nodes: NodeColumns, rows: Int64s, uid: str, seed: int, wanted: Bools | None = None) -> int:
    """One of ``rows`` (at least one), or of those that are ``wanted``: the one whose hash is highest.

    Of rows with equal hashes, which 64 bits of distinct names do not give in practice, the first is taken.
    """
    salt = np.uint64(stable_hash(f"{seed}/{uid}"))
    hashes = nodes.name_hash[: nodes.count] if len(rows) == nodes.count else nodes.name_hash[rows]
    lots = scrambled(hashes ^ salt)
    # A lot of 0 would lose against those that are not wanted; 1 is as good.
    lots |= np.uint64(1)
    return int(rows[(lots if wanted is None else lots * wanted).argmax()])
