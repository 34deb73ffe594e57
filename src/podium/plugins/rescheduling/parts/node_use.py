"""How full the nodes are of what their pods request, and how many of their pods would have to move."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.scaling.scale_down import belongs_to_node
from podium.framework.rescheduling.policy import Float64s
from podium.plugins.rescheduling.parts.row_changes import RowChanges


def requested_shares(cluster: Cluster, rows: Int64s) -> Float64s:
    """``[rows]``: the largest share that pods request of anything that the nodes offer."""
    nodes = cluster.nodes
    offered, requested = nodes.allocatable[:, rows], nodes.requested[:, rows]
    shares = np.divide(requested, offered, out=np.zeros(offered.shape), where=offered > 0)
    largest: Float64s = shares.max(axis=0, initial=0.0)
    return largest


class NodeUse:
    """Shares and numbers of pods by row, brought up to date for the rows that changed.

    ``shares`` are the largest that are requested of anything, ``guests`` the pods that are not the node's own
    (DaemonSets', mirror pods), nor on their way.
    """

    def __init__(self) -> None:
        self._changes = RowChanges()
        self.shares: Float64s = np.zeros(0)
        self.guests: Int64s = np.zeros(0, dtype=np.int64)

    def look(self, cluster: Cluster) -> None:
        """Take in what has changed."""
        count, rows = cluster.nodes.count, self._changes.since_last(cluster)
        if rows is None:
            rows = cluster.nodes.all_rows()
            self.shares, self.guests = np.zeros(count), np.zeros(count, dtype=np.int64)
        if len(rows):
            self.shares[rows] = requested_shares(cluster, rows)
            for row in rows.tolist():
                self.guests[row] = len(guests_on(cluster, row))

    def in_use(self) -> Bools:
        """``[rows]``: where pods are that are not the node's own."""
        used: Bools = self.guests > 0
        return used


def guests_on(cluster: Cluster, row: int) -> list[PodRecord]:
    """The pods on a node that are not its own, and stay, by slot."""
    return [pod for pod in cluster.pods_on(row) if not (pod.terminating or belongs_to_node(pod))]
