"""Why a pod is a victim that is not simply in the way on the preemptor's own node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.wide.dependents import Dependents
from podium.decide.preempting.wide.in_the_way import stands_in_the_way
from podium.decide.preempting.wide.potential import Takeable
from podium.framework.reach import Reaches


def reasons(
    cluster: Cluster,
    reaches: Reaches,
    row: int,
    victims: Sequence[PodRecord],
    dependents: tuple[Dependents, Takeable] | None,
) -> dict[str, str]:
    """By uid, why victims have to go for a pod that comes to a row; those are left out of whom nothing is known.

    That one depends on another victim is told where no filter that looks beyond the row is against it.
    """
    found = {}
    for victim in victims:
        in_the_way = [reach.reason for reach in reaches.found if stands_in_the_way(cluster, reach, row, victim)]
        if in_the_way:
            found[victim.uid] = ", ".join(dict.fromkeys(in_the_way))
        elif dependents is not None:
            why = _goes_along(cluster, row, victim, victims, *dependents)
            if why:
                found[victim.uid] = why
    return found


def _goes_along(
    cluster: Cluster,
    row: int,
    victim: PodRecord,
    victims: Sequence[PodRecord],
    dependents: Dependents,
    take: Takeable,
) -> str:
    """With which other victim a pod loses its affinity, or that its group goes; "" where it does not depend on them."""
    others = [int(take.index_of[other.slot]) for other in victims if other.uid != victim.uid]
    closed = dependents.of(sorted(others)) if others else None
    reason = None if closed is None else closed.get(int(take.index_of[victim.slot]))
    if reason is None:
        return ""
    if not reason.keys:
        if victim.row == row:
            return ""
        return f"goes with its group, {victim.pod_class.pod_group}"
    return f"requires to be near {cluster.pods.record(int(take.slots[np.intp(reason.of)])).key}"
