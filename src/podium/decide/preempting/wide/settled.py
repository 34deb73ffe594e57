"""Rows of which it is known, without trying every set, that no cheaper victims than those found are enough."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s, distinct
from podium.decide.preempting.costs.upstream import at_most
from podium.decide.preempting.wide.potential import Pairs
from podium.decide.preempting.wide.results import WideResults
from podium.decide.preempting.wide.sets import Asking


def settled(asking: Asking, pairs: Pairs, positions: Int64s, results: WideResults, *, is_monotone: bool) -> Bools:
    """``[rows]``: where nothing better is to be found than the results at ``positions``.

    Where ``is_monotone`` and nobody who may be a victim could be spared, nothing but all of them is enough. Where no
    set with one victim more costs less, none costs less than the cheapest of its pods: one victim who costs no more
    than anybody else is the best there is.
    """
    taken = results.numbers(positions)
    known = np.zeros(len(positions), dtype=np.bool_)
    if is_monotone:
        known |= (taken > 0) & (taken == np.bincount(pairs.owners, minlength=len(pairs.rows)))
    if asking.grows:
        known |= (taken == 1) & at_most(results.costs[:, positions], _cheapest(asking, pairs))
    return known


def _cheapest(asking: Asking, pairs: Pairs) -> Int64s:
    """``[criteria, rows]``: what the cheapest of those costs, by itself, who may be victims for each row.

    Each row has some.
    """
    members, at = distinct(pairs.members, len(asking.take))
    alone = asking.alone(members)
    order = np.lexsort(alone[::-1])
    ranks = np.empty(len(members), dtype=np.int64)
    ranks[order] = np.arange(len(members))
    firsts = np.searchsorted(pairs.owners, np.arange(len(pairs.rows)))
    floors: Int64s = alone[:, order[np.minimum.reduceat(ranks[at], firsts)]]
    return floors
