"""Where a pod may well fit, found in a few array operations.

Proposals for nodes without room would use up the planner's trials. What is said here is not the last word: that is the
filters' of the pod's scheduler, which the planner asks.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.cluster.taints import kept_off
from podium.cluster.view import View
from podium.framework.rescheduling.picture import Picture
from podium.plugins.node_affinity import required_nodes


def rough_fit(picture: Picture, pod: PodRecord, among: Bools | None = None, *, is_new: bool = False) -> Bools:
    """`[rows]`: the nodes, of ``among`` or all, that take in moved pods, that the pod selects, and that have room.

    The node that it is on is none of them, unless ``is_new`` says that another pod of its class is meant.
    """
    fits = rough_choice(picture, pod, among, is_new=is_new)
    rows = np.flatnonzero(fits).astype(np.int64)
    if len(rows):
        fits[rows] = has_room(picture, pod, rows)
    return fits


def rough_choice(picture: Picture, pod: PodRecord, among: Bools | None = None, *, is_new: bool = False) -> Bools:
    """`[rows]`: the same, whether they have room or not."""
    cluster = picture.cluster
    fits: Bools = picture.targets[: cluster.nodes.count].copy()
    if among is not None:
        fits &= among
    if pod.row >= 0 and not is_new:
        fits[pod.row] = False
    rows = np.flatnonzero(fits)
    if len(rows):
        view = View(cluster, rows)
        fits[rows] = required_nodes(pod.pod_class).rows(view) & ~kept_off(pod.spec.tolerations, view)
    return fits


def has_room(picture: Picture, pod: PodRecord, rows: Int64s, without: PodRecord | None = None) -> Bools:
    """`[rows]`: where a pod would find room, were another one gone that is on those nodes."""
    nodes = picture.cluster.nodes
    freed = {} if without is None else without.pod_class.requests
    found: Bools = nodes.pod_count[rows] - (without is not None) < nodes.allowed_pods[rows]
    for resource, amount in pod.pod_class.requests.items():
        # A row of the table first: that is much quicker than both indices at once.
        left = nodes.allocatable[resource][rows] - nodes.requested[resource][rows]
        found &= left >= amount - freed.get(resource, 0)
    return found
