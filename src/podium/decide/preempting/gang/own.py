"""Whom a gang takes no room from, though they were less important: its own members, and others that are spared."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.gang import Gang
from podium.decide.preempting.trials import VictimFilter


def sparing_own(cluster: Cluster, gang: Gang, further: VictimFilter | None) -> VictimFilter | None:
    """Lets be victims whom ``further`` does, and no member of the gang, some of which may be less important than it."""
    waiting = min(member.priority for member in gang.members) < gang.priority
    running = any(
        record.priority < gang.priority for uid in gang.running if (record := cluster.placed.get(uid)) is not None
    )
    return without(cluster, gang.own, further) if waiting or running else further


def without(cluster: Cluster, spared: frozenset[str], further: VictimFilter | None) -> VictimFilter:
    """Lets be victims whom ``further`` does (None: everybody), but for some pods (uids)."""

    def allowed(pod: PodRecord, slots: Int64s) -> Bools:
        found = np.ones(len(slots), dtype=np.bool_) if further is None else further(pod, slots)
        uids = (cluster.pods.record(slot).uid for slot in slots.tolist())
        free = np.fromiter((uid not in spared for uid in uids), dtype=np.bool_, count=len(slots))
        both: Bools = found & free
        return both

    return allowed
