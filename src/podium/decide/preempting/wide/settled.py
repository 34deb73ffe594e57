"""Rows of which it is known, without trying every set, that no cheaper victims than those found are enough."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s, distinct
from podium.decide.preempting.costs.upstream import at_most
from podium.decide.preempting.wide.potential import Pairs
from podium.decide.preempting.wide.sets import Asking


def all_alike(asking: Asking, pairs: Pairs) -> Bools:
    """``[rows]``: where nothing tells apart those who may stay: they are on one node, and of one class, age and rank.

    Then it counts alone how many of them go. Where a pod less never keeps the preemptor off, sparing one after the
    other leaves the fewest.
    """
    number = len(pairs.rows)
    free = ~pairs.forced
    alike: Bools = np.bincount(pairs.owners[free & ~pairs.own], minlength=number) == 0
    places = np.flatnonzero(free & alike[pairs.owners])
    owners, slots = pairs.owners[places], asking.take.slots[pairs.members[places]]
    # Those of a row stand together.
    mates = owners[1:] == owners[:-1]
    pods = asking.cluster.pods
    for column in (pods.pod_class, pods.priority, pods.start_ns, pods.terminating):
        values = column[slots]
        alike[owners[1:][mates & (values[1:] != values[:-1])]] = False
    return alike


def cost_least_alone(asking: Asking, pairs: Pairs, costs: Int64s) -> Bools:
    """``[rows]``: where ``costs``, ``[criteria, rows]``, are no more than anybody costs by itself who may be a victim.

    Where no set with one victim more costs less, one victim of that cost is the best there is. Each row has somebody.
    """
    members, at = distinct(pairs.members, len(asking.take))
    alone = asking.alone(members)
    order = np.lexsort(alone[::-1])
    ranks = np.empty(len(members), dtype=np.int64)
    ranks[order] = np.arange(len(members))
    firsts = np.searchsorted(pairs.owners, np.arange(len(pairs.rows)))
    return at_most(costs, alone[:, order[np.minimum.reduceat(ranks[at], firsts)]])
