"""The best set of victims on one row, found by trying all of them in the order of what they cost."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.decide.preempting.costs.upstream import at_most
from podium.decide.preempting.wide.dependents import Dependents
from podium.decide.preempting.wide.potential import Pairs
from podium.decide.preempting.wide.sets import Asking, MemberSets, sets_of

MOST_FREE = 14
"""Of more pods on a row that may stay or go, their sets are not tried."""

_FIRST = 64


def best_set(
    asking: Asking, dependents: Dependents | None, pairs: Pairs, limit: Int64s | None
) -> tuple[MemberSets, Int64s] | None:
    """The cheapest set of victims with which the pod fits the one row of ``pairs``, and its cost; None where none does.

    Sets that cost more than ``limit`` are not taken, nor those of which a part would be enough. Of equally cheap ones
    it is one with the fewest victims, and the first of these, counted in binary with the least important pod as the
    first digit.
    """
    free = np.flatnonzero(~pairs.forced)
    taken = np.ones((1 << len(free), len(pairs.members)), dtype=np.bool_)
    taken[:, free] = (np.arange(1 << len(free))[:, None] >> np.arange(len(free))[::-1]) & 1
    owners, places = np.nonzero(taken)
    sets = sets_of(owners, pairs.members[places], len(taken))
    if dependents is not None:
        sets = dependents.closed(sets)
    costs = asking.costs(np.repeat(pairs.rows, len(sets)), sets)
    numbers = np.diff(sets.starts)
    wanted = sets.allowed & (numbers > 0)
    if asking.requires_budgets:
        wanted &= asking.violations(sets) == 0
    if not asking.grows:
        wanted[wanted] = _enough(asking, int(pairs.rows[0]), sets, np.flatnonzero(wanted))
    if limit is not None:
        wanted &= at_most(costs, limit)
    order = np.flatnonzero(wanted)
    order = order[np.lexsort((numbers[order], *costs[::-1, order]))]
    if not asking.grows:
        return (sets.only(order[:1]), costs[:, order[0]]) if len(order) else None
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


def _enough(asking: Asking, row: int, sets: MemberSets, some: Int64s) -> Bools:
    """``[some]``: without which of the sets the pod fits the row, where it does not without any part of the set."""
    numbers = np.diff(sets.starts)
    has = np.zeros((len(sets), int(sets.members.max(initial=0)) + 1), dtype=np.bool_)
    has[sets.owners, sets.members] = True
    has = has[:, has.any(axis=0)]
    enough, beyond = np.zeros(len(sets), dtype=np.bool_), np.zeros(len(sets), dtype=np.bool_)
    for number in range(1, int(numbers[some].max(initial=0)) + 1):
        asked = some[(numbers[some] == number) & ~beyond[some]]
        fitting = asked[asking.refused(np.full(len(asked), row), sets.only(asked)) == 0]
        enough[fitting] = True
        for found in fitting.tolist():
            beyond |= (has | ~has[found]).all(axis=1) & (numbers > number)
    return enough[some]
