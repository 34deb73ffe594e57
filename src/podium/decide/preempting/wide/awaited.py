"""Victims on other nodes that a preemptor waits for: they were preempted, and have not ended yet.

Whose victims they are stands in no object. But those for whose going a nominated pod waits are preempted pods in its
way that terminate, whoever they were preempted for; so a scheduler that begins anew waits for the same.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord
from podium.decide.preempting.wide.in_the_way import stands_in_the_way
from podium.framework.reach import Reaches


def awaits_others(cluster: Cluster, pod: PodRecord, row: int, reaches: Reaches, *, evicts: bool = False) -> bool:
    """Whether less important pods, which were preempted, still terminate where they keep ``pod`` off a row.

    With ``evicts`` these are not marked as victims: all that terminate count.
    """
    table = cluster.pods
    count = table.count
    leaving = table.terminating[:count] & (table.row[:count] != NO_ROW) & (table.priority[:count] < pod.priority)
    victims = [victim for victim in map(table.record, np.flatnonzero(leaving).tolist()) if victim.preempted or evicts]
    if not victims:
        return False
    own = set(cluster.nominations.victims_of(pod.uid))
    return any(victim.uid in own for victim in victims) or any(
        stands_in_the_way(cluster, reach, row, victim) for victim in victims for reach in reaches.found
    )
