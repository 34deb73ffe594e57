"""Which pods keep a pod off a node, from that node or from others, by what filters say of how far they look."""

from __future__ import annotations

import numpy as np

from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord
from podium.framework.reach import ANYWHERE, Reach, Reaches


def stands_in_the_way(cluster: Cluster, reach: Reach, row: int, victim: PodRecord) -> bool:
    """Whether a filter's answer for a row hangs on a pod so far that the pod may have to go."""
    if reach.effect == "Stay" or (reach.predicate.live_only and victim.terminating):
        return False
    if reach.key != ANYWHERE:
        codes = cluster.nodes.labels(reach.key).codes
        if not codes[row] or codes[row] != codes[victim.row]:
            return False
    return victim.pod_class.id in cluster.matcher(reach.predicate).classes


def in_the_way_elsewhere(cluster: Cluster, reaches: Reaches, row: int) -> list[PodRecord]:
    """The pods on other rows on which a filter's answer for a row hangs so far that they may have to go, by slot."""
    found: set[int] = set()
    for reach in reaches.found:
        if reach.effect == "Stay":
            continue
        slots = cluster.pods.slots_of(cluster.matcher(reach.predicate).classes)
        rows = cluster.pods.row[slots]
        around = (rows != NO_ROW) & (rows != row)
        if reach.key != ANYWHERE:
            codes = cluster.nodes.labels(reach.key).codes
            around &= (codes[rows] == codes[row]) & (codes[row] != 0)
        if reach.predicate.live_only:
            around &= ~cluster.pods.terminating[slots]
        found.update(slots[np.flatnonzero(around)].tolist())
    return [cluster.pods.record(slot) for slot in sorted(found)]
