"""Which rows of a cluster are to be looked at anew, for what a policy keeps by row."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster


class RowChanges:
    """A place in the log of a cluster's changes."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._position = 0
        self._count = 0

    def since_last(self, cluster: Cluster) -> Int64s | None:
        """The rows that changed since this was last asked, ascending; None for all, and for rows that came."""
        nodes = cluster.nodes
        changed = None
        if cluster is self._cluster and nodes.count == self._count:
            changed = nodes.changes.since(self._position)
        self._cluster, self._position, self._count = cluster, nodes.changes.position, nodes.count
        return changed

    def forget(self) -> None:
        """Everything is to be looked at anew."""
        self._cluster = None


def present_rows(cluster: Cluster) -> Int64s:
    """The rows that hold a node, ascending."""
    return np.flatnonzero(cluster.nodes.present[: cluster.nodes.count]).astype(np.int64)
