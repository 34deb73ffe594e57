"""Where a pod may well fit, found in a few array operations.

Proposals for nodes without room would use up the planner's trials. What is said here is not the last word: that is the
filters' of the pod's scheduler, which the planner asks.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools
from podium.cluster.pods import PodRecord
from podium.cluster.taints import kept_off
from podium.cluster.view import View
from podium.framework.rescheduling.picture import Picture
from podium.plugins.node_affinity import required_nodes


def rough_fit(picture: Picture, pod: PodRecord, among: Bools | None = None, *, is_new: bool = False) -> Bools:
    """`[rows]`: the nodes, of ``among`` or all, that take in moved pods, that the pod selects, and that have room.

    The node that it is on is none of them, unless ``is_new`` says that another pod of its class is meant.
    """
    cluster = picture.cluster
    nodes = cluster.nodes
    fits: Bools = picture.targets[: nodes.count].copy()
    if among is not None:
        fits &= among
    if pod.row >= 0 and not is_new:
        fits[pod.row] = False
    rows = np.flatnonzero(fits)
    if not len(rows):
        return fits
    view = View(cluster, rows)
    found = required_nodes(pod.pod_class).rows(view) & ~kept_off(pod.spec.tolerations, view)
    found &= nodes.pod_count[rows] < nodes.allowed_pods[rows]
    for resource, amount in pod.pod_class.requests.items():
        found &= nodes.requested[resource, rows] + amount <= nodes.allocatable[resource, rows]
    fits[rows] = found
    return fits
