"""Choosing among equals: evenly spread over the choices, and the same every time.

kube-scheduler draws lots here. We put equals in the order of their names' hashes, and take the one in the place that a
hash of the seed and the pod's uid says, counted round and round. So different pods get different nodes, a run can be
repeated, and who keeps equals in that order draws from them without looking at each (`podium.framework.kept.shelf`).
"""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s, stable_hash
from podium.cluster.nodes import NodeColumns


def lot(uid: str, seed: int) -> int:
    """What a pod draws: of n equals it takes the one in place ``lot % n``."""
    return stable_hash(f"{seed}/{uid}")


def pick(nodes: NodeColumns, rows: Int64s, uid: str, seed: int, wanted: Bools | None = None) -> int:
    """One of ``rows`` (at least one), or of those that are ``wanted``: the one in the place that the pod's lot says.

    Of rows with equal hashes, which 64 bits of distinct names do not give in practice, the first is taken.
    """
    equals = rows if wanted is None else rows[wanted]
    if len(equals) == 1:
        return int(equals[0])
    place = lot(uid, seed) % len(equals)
    hashes = nodes.name_hash[equals]
    return int(equals[(hashes == np.partition(hashes, place)[place]).argmax()])
