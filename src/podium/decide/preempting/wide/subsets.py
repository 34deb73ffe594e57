"""The best set of victims on each of some rows, found by trying all of them in the order of what they cost."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s, pieces
from podium.decide.preempting.costs.upstream import at_most
from podium.decide.preempting.wide.dependents import Dependents
from podium.decide.preempting.wide.potential import Pairs
from podium.decide.preempting.wide.sets import Asking, MemberSets, sets_of

MOST_FREE = 14
"""Of more pods on a row that may stay or go, their sets are not tried."""

_FIRST = 64

Found = tuple[Int64s, MemberSets, Int64s]
"""Rows, by their positions; a set for each; and ``[criteria, sets]``, what these cost."""


def best_sets(
    asking: Asking, dependents: Dependents | None, pairs: Pairs, limit: Int64s | None, *, all_rows: bool
) -> Found:
    """The cheapest sets of victims with which the pod fits rows, and what they cost; rows where none does are left out.

    Sets that cost more than ``limit`` are not taken, nor those of which a part would be enough. Unless they are wanted
    of ``all_rows``, those are left out, too, that cost more than another row's. Of equally cheap ones of a row it is
    one with the fewest victims, and the first of these, counted in binary with the least important pod as the first
    digit.
    """
    of_row, sets = _all_sets(pairs)
    if dependents is not None:
        sets = dependents.closed(sets)
    costs = asking.costs(pairs.rows[of_row], sets)
    numbers = np.diff(sets.starts)
    wanted = sets.allowed & (numbers > 0)
    if asking.requires_budgets:
        wanted &= asking.violations(sets) == 0
    if not asking.grows:
        # Of these it is known that they are enough, whatever they cost.
        wanted = _enough_by_row(asking, pairs, of_row, sets, wanted)
    if limit is not None:
        wanted &= at_most(costs, limit)
    order = np.flatnonzero(wanted)
    order = order[np.lexsort((numbers[order], *costs[::-1, order]))]
    if asking.grows:
        order = _first_enough(asking, pairs.rows[of_row], sets, costs, order, of_row, all_rows=all_rows)
    found, firsts = np.unique(of_row[order], return_index=True)
    chosen = order[firsts]
    return found, sets.only(chosen), costs[:, chosen]


def _all_sets(pairs: Pairs) -> tuple[Int64s, MemberSets]:
    """All sets of those who may go and have to, for each row one after the other: the row of each, and the sets."""
    forced = pairs.forced
    number = len(pairs.rows)
    starts = np.concatenate([[0], np.cumsum(np.bincount(pairs.owners, minlength=number))])
    free = np.bincount(pairs.owners[~forced], minlength=number)
    of_row = np.repeat(np.arange(number), 1 << free)
    numbers = np.arange(len(of_row)) - np.repeat(np.cumsum(1 << free) - (1 << free), 1 << free)
    # The first free one of a row is the highest digit.
    before = np.concatenate([[0], np.cumsum(~forced)])
    digits = free[pairs.owners] - 1 - (before[:-1] - before[starts[:-1]][pairs.owners])
    begins, places = pieces(starts, of_row)
    owners = np.repeat(np.arange(len(of_row)), np.diff(begins))
    taken = forced[places] | ((numbers[owners] >> digits[places]) & 1 != 0)
    return of_row, sets_of(owners[taken], pairs.members[places[taken]], len(of_row))


def _first_enough(
    asking: Asking,
    rows: Int64s,
    sets: MemberSets,
    costs: Int64s,
    order: Int64s,
    of_row: Int64s,
    *,
    all_rows: bool,
) -> Int64s:
    """Of sets in an order, those without which the pod fits their rows, the first of each row.

    Unless they are wanted of all rows, no set is asked about that costs more than one which is enough.
    """
    found: list[Int64s] = []
    is_found = np.zeros(int(of_row.max(initial=-1)) + 1, dtype=np.bool_)
    size = _FIRST
    while len(order):
        some, order = order[:size], order[size:]
        fitting = some[asking.refused(rows[some], sets.only(some)) == 0]
        if len(fitting):
            found.append(fitting)
            is_found[of_row[fitting]] = True
            if not all_rows:
                order = order[at_most(costs[:, order], costs[:, fitting[0]])]
            order = order[~is_found[of_row[order]]]
        size *= 2
    return np.concatenate([np.empty(0, dtype=np.int64), *found])


def _enough_by_row(asking: Asking, pairs: Pairs, of_row: Int64s, sets: MemberSets, wanted: Bools) -> Bools:
    """``[sets]``: those of the wanted ones that are enough, and of which no part is."""
    enough = wanted.copy()
    for position, row in enumerate(pairs.rows.tolist()):
        places = np.flatnonzero(of_row == position)
        of_this = sets.only(places)
        some = np.flatnonzero(wanted[places])
        enough[places[some]] = _enough(asking, row, of_this, some)
    return enough


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
