"""Choosing among equals: evenly spread over the choices, and the same every time.

kube-scheduler draws lots here. We order equals by a hash of the seed, the pod's uid and the node's name, so that
different pods prefer different nodes and a run can be repeated.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Int64s, scrambled, stable_hash
from podium.cluster.nodes import NodeColumns


def pick(nodes: NodeColumns, rows: Int64s, uid: str, seed: int) -> int:
    """One of ``rows`` (at least one): the one whose hash is highest, then whose name comes first."""
    if len(rows) == 1:
        return int(rows[0])
    salt = np.uint64(stable_hash(f"{seed}/{uid}"))
    lots = scrambled(nodes.name_hash[rows] ^ salt)
    highest = rows[lots == lots.max()]
    return int(highest[0]) if len(highest) == 1 else min((int(row) for row in highest), key=nodes.name)
