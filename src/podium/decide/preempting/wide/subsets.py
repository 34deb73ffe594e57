"""The best set of victims on one row, found by trying all of them in the order of what they cost."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Int64s
from podium.decide.preempting.costs.upstream import at_most
from podium.decide.preempting.trial_table import CRITERIA
from podium.decide.preempting.wide.dependents import Dependents
from podium.decide.preempting.wide.potential import Pairs
from podium.decide.preempting.wide.sets import Asking, VictimSets, sets_of

MOST_FREE = 14
"""Of more pods on a row that may stay or go, their sets are not tried."""

_FIRST = 64
_NUMBER = CRITERIA.index("fewest victims") - len(CRITERIA)


def best_set(
    asking: Asking, dependents: Dependents | None, pairs: Pairs, limit: Int64s | None
) -> tuple[VictimSets, Int64s] | None:
    """The cheapest set of victims with which the pod fits the one row of ``pairs``, and its cost; None where none does.

    Sets that cost more than ``limit`` are not looked at. Of equally cheap ones it is the first, counted in binary with
    the least important pod as the first digit.
    """
    free = np.flatnonzero(~pairs.forced)
    taken = np.ones((1 << len(free), len(pairs.members)), dtype=np.bool_)
    taken[:, free] = (np.arange(1 << len(free))[:, None] >> np.arange(len(free))[::-1]) & 1
    owners, places = np.nonzero(taken)
    sets = sets_of(owners, pairs.members[places], len(taken))
    if dependents is not None:
        sets = dependents.closed(sets)
    costs = asking.costs(np.repeat(pairs.rows, len(sets)), sets)
    wanted = sets.allowed & (costs[_NUMBER] > 0)
    if limit is not None:
        wanted &= at_most(costs, limit)
    order = np.flatnonzero(wanted)
    order = order[np.lexsort(costs[::-1, order])]
    first, size = 0, _FIRST
    while first < len(order):
        some = order[first : first + size]
        fitting = np.flatnonzero(asking.refused(np.repeat(pairs.rows, len(some)), sets.only(some)) == 0)
        if len(fitting):
            found = some[fitting[:1]]
            cost: Int64s = costs[:, found[0]]
            return sets.only(found), cost
        first, size = first + size, 2 * size
    return None
