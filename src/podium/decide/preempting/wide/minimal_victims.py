"""Minimal victims for a pod on each of some rows: the forced ones, and those of the others that cannot be spared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from podium.cluster.arrays import Bools, Int64s, Lists, distinct, offsets
from podium.cluster.what_if_view import WhatIfView
from podium.decide.preempting.reprieve import NOT_TRIED, at_most, cheapest_first, giving_back, reprieve
from podium.decide.preempting.wide.dependents import Dependents
from podium.decide.preempting.wide.victim_domains import NO_SETS, MemberSets, SetEvaluator, VictimPairs

_MOST_PARTNERS = 8
_FIRST_SETS = 64


class ForcedVictims(Struct, frozen=True, eq=False):
    """Rows without their forced victims, ``needed``; and why that is not enough, 0 where it is.

    ``worlds`` are the what-if views of the rows without them, None if they would be of no use.
    """

    pairs: VictimPairs
    needed: MemberSets
    refused: Int64s
    worlds: WhatIfView | None

    def only(self, positions: Int64s) -> ForcedVictims:
        """Return some of the rows, given by their positions, ascending."""
        if len(positions) == len(self.refused):
            return self
        worlds = None if self.worlds is None else self.worlds.at(positions)
        return ForcedVictims(self.pairs.only(positions), self.needed.only(positions), self.refused[positions], worlds)


class VictimMinimizer(Struct, frozen=True):
    """Finds minimal victims row by row.

    If one pod less may keep the preemptor off (not ``is_monotone``), several starts are tried, and a pod is given back
    with those of its ``dependents`` that no other victim takes along. With ``partners_first`` pods that the preemptor
    requires nearby are given back before all others.
    """

    evaluator: SetEvaluator
    dependents: Dependents | None
    is_monotone: bool
    partners_first: bool

    def forced_victims(self, pairs: VictimPairs) -> ForcedVictims:
        forced, evaluator = pairs.forced, self.evaluator
        needed = self._closed(pairs.sets(forced))
        if not self.is_monotone:
            return ForcedVictims(pairs, needed, evaluator.refused(pairs.rows, needed), None)
        worlds = evaluator.worlds(pairs.rows, needed)
        # Rows without forced victims are known to reject the pod.
        refused = evaluator.filtered(worlds) if forced.any() else np.full(len(pairs.rows), NOT_TRIED, dtype=np.int64)
        return ForcedVictims(pairs, needed, refused, worlds)

    def minimal(self, without_forced: ForcedVictims, limit: Int64s | None) -> tuple[Int64s, MemberSets, Bools]:
        """Return the minimal victims: all others leave their rows too, and those that can be spared return.

        The result is ``[rows]`` why the pod does not fit with any victims, 0 where it does; the victims on those where
        it does; and ``[rows]`` where no cheaper victims exist. Rows with victims that cost more than ``limit`` are
        given up.
        """
        if without_forced.worlds is None:
            return self._from_several_starts(without_forced.pairs)
        pairs, worlds = without_forced.pairs, without_forced.worlds
        free = ~pairs.forced
        worlds.remove_anywhere(pairs.owners[free], self.evaluator.pool.slots[pairs.entries[free]])
        refused = self.evaluator.filtered(worlds)
        is_settled = refused != 0
        fitting = np.flatnonzero(refused == 0)
        if not len(fitting):
            return refused, NO_SETS, is_settled
        without_forced = without_forced.only(fitting)
        pairs = without_forced.pairs
        alike = all_alike(self.evaluator, pairs)
        left = np.empty(len(pairs.entries), dtype=np.bool_)
        for are_alike in (True, False):
            part = without_forced.only(np.flatnonzero(alike == are_alike))
            if part.worlds is not None and len(part.pairs):
                left[alike[pairs.owners] == are_alike] = (
                    self._left_of_alike(part.worlds, part.pairs, part.refused == NOT_TRIED)
                    if are_alike
                    else self._left_in_views(part.worlds, part.pairs, limit)
                )
        # With other criteria than priority and start, some of those alike may be cheaper than others.
        is_settled[fitting] = alike & self.evaluator.is_plain
        return refused, pairs.sets(left), is_settled

    def _from_several_starts(self, pairs: VictimPairs) -> tuple[Int64s, MemberSets, Bools]:
        """Find minimal victims where the pod may not fit with all gone, and fit with fewer gone."""
        refused = np.full(len(pairs), NOT_TRIED, dtype=np.int64)
        gone = np.ones(len(pairs.entries), dtype=np.bool_)
        for start in self._starts(pairs):
            undecided = np.flatnonzero(refused)
            sets = self._closed(pairs.sets(start).only(undecided))
            gone = np.where((refused != 0)[pairs.owners], start, gone)
            refused[undecided] = self.evaluator.refused(pairs.rows[undecided], sets)
            if not refused.any():
                break
        fitting = np.flatnonzero(refused == 0)
        is_settled = np.zeros(len(pairs), dtype=np.bool_)
        if not len(fitting):
            return refused, NO_SETS, is_settled
        some = pairs.only(fitting)
        left = self._left_of_sets(some, gone[(refused == 0)[pairs.owners]])
        return refused, self._closed(some.sets(left)), is_settled

    def _starts(self, pairs: VictimPairs) -> Iterator[Bools]:
        """Yield ``[pairs]``: the pods to remove at first, one choice after the other until the pod fits.

        First affinity partners stay, then all but one of them go, and so on; then all pods go; then those stay that
        others depend on; and then all on other nodes.
        """
        if pairs.partner.any():
            yield ~pairs.partner
            # The number of partners on the same row that come before each pair.
            before = offsets(pairs.partner)
            place = before[:-1] - before[pairs.starts[pairs.owners]]
            for kept in range(min(_MOST_PARTNERS, int(place[pairs.partner].max()) + 1)):
                yield ~(pairs.partner & (place == kept))
        yield np.ones(len(pairs.entries), dtype=np.bool_)
        if self.dependents is not None:
            yield ~self.dependents.are_of(pairs.entries) | pairs.forced
        yield pairs.own | pairs.forced

    def _closed(self, sets: MemberSets) -> MemberSets:
        return sets if self.dependents is None else self.dependents.closed(sets)

    def _left_of_sets(self, pairs: VictimPairs, gone: Bools) -> Bools:
        """Return ``[pairs]``: those of the ``gone`` ones that cannot be spared; the pod fits without all of these.

        One pod less may keep the preemptor off, so that all are tried again once others were spared.
        """
        order, left = self._order(pairs, gone & ~pairs.forced), gone.copy()

        def give_back(positions: Int64s, pods: Int64s) -> Bools:
            fits = ~left[pods]
            some = np.flatnonzero(left[pods])
            if len(some):
                trial = left.copy()
                trial[pods] = False
                rows = positions[some]
                sets = self._closed(pairs.sets(trial).only(rows))
                fits[some] = self.evaluator.refused(pairs.rows[rows], sets) == 0
            return fits

        while True:
            before = left.copy()
            reprieve(left, order, np.arange(len(pairs)), give_back)
            if np.array_equal(before, left):
                return left

    def _left_in_views(self, worlds: WhatIfView, pairs: VictimPairs, limit: Int64s | None) -> Bools:
        """Return ``[pairs]``: the pods that cannot be spared, where all are gone and fewer victims never hurt.

        ``worlds`` are the views of the rows without them, and change. Rows are given up, with some that could still be
        spared, once those that cannot be cost more than ``limit``.
        """
        evaluator, left = self.evaluator, np.ones(len(pairs.entries), dtype=np.bool_)
        order, rows = self._order(pairs, ~pairs.forced), np.arange(len(pairs))

        def fits(trial: WhatIfView) -> Bools:
            return np.asarray(evaluator.filtered(trial, are_known=True) == 0)

        give_back = giving_back(worlds, evaluator.pool.slots[pairs.entries], fits, WhatIfView.add_anywhere)
        if limit is None:
            reprieve(left, order, rows, give_back)
            return left
        # Lower bounds of the costs of the victims that are certain on each row.
        bounds, adds = evaluator.least(pairs.sets(pairs.forced)), evaluator.adds[:, None]

        def give_back_or_charge(positions: Int64s, pods: Int64s) -> Bools:
            returned = give_back(positions, pods)
            kept, members = positions[~returned], pairs.entries[pods[~returned]]
            alone, before = evaluator.costs_alone(members)[: len(bounds)], bounds[:, kept]
            bounds[:, kept] = np.where(adds, before + alone, np.maximum(before, alone))
            return returned

        def may_go_on(positions: Int64s) -> Int64s:
            return positions[at_most(bounds[:, positions], limit[: len(bounds)])]

        reprieve(left, order, rows, give_back_or_charge, may_go_on)
        return left

    def _left_of_alike(self, worlds: WhatIfView, pairs: VictimPairs, may_all_stay: Bools) -> Bools:
        """Return ``[pairs]``: the pods that cannot be spared, where only the number of a row's free pods matters.

        ``may_all_stay`` is ``[rows]``: where it is not known that the pod does not fit beside all of them. It is a
        binary search: half of those in doubt are given back together.
        """
        evaluator, left = self.evaluator, np.ones(len(pairs.entries), dtype=np.bool_)
        order = self._order(pairs, ~pairs.forced)
        slots, lengths = evaluator.pool.slots[pairs.entries[order.entries]], order.lengths
        # The number that may stay, and a number that may not.
        stay, too_many = np.zeros(len(pairs), dtype=np.int64), lengths + may_all_stay
        while len(undecided_rows := np.flatnonzero(too_many - stay > 1)):
            middle = (stay[undecided_rows] + too_many[undecided_rows]) // 2
            back = middle - stay[undecided_rows]
            owners = np.repeat(np.arange(len(undecided_rows)), back)
            firsts = order.starts[undecided_rows] + stay[undecided_rows] - offsets(back)[:-1]
            pods = slots[firsts[owners] + np.arange(len(owners))]
            trial = worlds.at(undecided_rows)
            trial.add_anywhere(owners, pods)
            fits = evaluator.filtered(trial, are_known=True) == 0
            stay[undecided_rows[fits]], too_many[undecided_rows[~fits]] = middle[fits], middle[~fits]
            given = fits[owners]
            worlds.add_anywhere(undecided_rows[owners[given]], pods[given])
        in_row = np.arange(len(slots)) - np.repeat(order.starts[:-1], lengths)
        left[order.entries[in_row < np.repeat(stay, lengths)]] = False
        return left

    def _order(self, pairs: VictimPairs, may_stay: Bools) -> Lists:
        return self.evaluator.reprieve_order(pairs, may_stay, partners_first=self.partners_first)


def all_alike(evaluator: SetEvaluator, pairs: VictimPairs) -> Bools:
    """Return ``[rows]``: where the free pods are on one node and of equal class, priority, start and state.

    Then only their number counts. If one pod less never keeps the preemptor off, sparing one after the other leaves the
    fewest.
    """
    free = ~pairs.forced
    alike: Bools = pairs.sums(free & ~pairs.own) == 0
    places = np.flatnonzero(free & alike[pairs.owners])
    owners, slots = pairs.owners[places], evaluator.pool.slots[pairs.entries[places]]
    # The pods of a row are neighbors.
    mates = owners[1:] == owners[:-1]
    pods = evaluator.cluster.pods
    for column in (pods.pod_class, pods.priority, pods.start_ns, pods.terminating):
        values = column[slots]
        alike[owners[1:][mates & (values[1:] != values[:-1])]] = False
    return alike


def cost_least_alone(evaluator: SetEvaluator, pairs: VictimPairs, costs: Int64s) -> Bools:
    """Return ``[rows]``: where ``costs``, ``[criteria, rows]``, are no more than the cheapest single pod's.

    If no set with one victim more costs less, one victim of that cost is the best. Each row has some pod.
    """
    members, at = distinct(pairs.entries, len(evaluator.pool))
    alone = evaluator.costs_alone(members)
    order = np.lexsort(alone[::-1])
    ranks = np.empty(len(members), dtype=np.int64)
    ranks[order] = np.arange(len(members))
    return at_most(costs, alone[:, order[np.minimum.reduceat(ranks[at], pairs.starts[:-1])]])


def best_sets(
    evaluator: SetEvaluator, dependents: Dependents | None, pairs: VictimPairs, limit: Int64s | None, *, all_rows: bool
) -> tuple[Int64s, MemberSets, Int64s]:
    """Return rows, by their positions; the cheapest set with which the pod fits each; and ``[criteria, sets]`` costs.

    Rows without such a set are left out. Sets that cost more than ``limit``, and sets that contain one that suffices,
    do not count. Unless ``all_rows`` are wanted, rows that cost more than another one are left out. Of equally cheap
    sets of a row it is one with the fewest victims, and the first of these, counted in binary with the least important
    pod as the lowest digit.
    """
    of_row, sets = _all_sets(pairs)
    if dependents is not None:
        sets = dependents.closed(sets)
    costs = evaluator.costs(pairs.rows[of_row], sets)
    wanted = sets.allowed & (sets.lengths > 0)
    if evaluator.set_costs.requires_budgets:
        wanted &= evaluator.violations(sets) == 0
    if not evaluator.grows:
        for position, row in enumerate(pairs.rows.tolist()):
            places = np.flatnonzero(of_row == position)
            some = np.flatnonzero(wanted[places])
            wanted[places[some]] = _minimal_sets(evaluator, row, sets.only(places), some)
    if limit is not None:
        wanted &= at_most(costs, limit)
    order = cheapest_first(costs, sets.lengths, wanted)
    if evaluator.grows:
        order = _first_fitting(evaluator, pairs.rows[of_row], sets, order, of_row, None if all_rows else costs)
    found, firsts = np.unique(of_row[order], return_index=True)
    chosen = order[firsts]
    return found, sets.only(chosen), costs[:, chosen]


def _all_sets(pairs: VictimPairs) -> tuple[Int64s, MemberSets]:
    """Return all sets of each row's free pods, with the forced ones: the row of each set, and the sets."""
    forced, number = pairs.forced, len(pairs)
    free = pairs.sums(~forced)
    numbers_of_sets = 1 << free
    of_row = np.repeat(np.arange(number), numbers_of_sets)
    numbers = np.arange(len(of_row)) - np.repeat(offsets(numbers_of_sets)[:-1], numbers_of_sets)
    # The first free pod of a row is the highest digit.
    before = offsets(~forced)
    digits = free[pairs.owners] - 1 - (before[:-1] - before[pairs.starts[pairs.owners]])
    starts, places = pairs.places_of(of_row)
    every = Lists(starts, pairs.entries[places])
    taken = forced[places] | ((numbers[every.owners] >> digits[places]) & 1 != 0)
    return of_row, MemberSets.at(offsets(every.sums(taken)), every.entries[taken])


def _first_fitting(
    evaluator: SetEvaluator, rows: Int64s, sets: MemberSets, order: Int64s, of_row: Int64s, costs: Int64s | None
) -> Int64s:
    """Return the first set of each row, in an order, without which the pod fits.

    With ``costs``, sets that cost more than one that suffices are skipped.
    """
    found: list[Int64s] = []
    is_found = np.zeros(int(of_row.max(initial=-1)) + 1, dtype=np.bool_)
    size = _FIRST_SETS
    while len(order):
        some, order = order[:size], order[size:]
        fitting = some[evaluator.refused(rows[some], sets.only(some)) == 0]
        if len(fitting):
            found.append(fitting)
            is_found[of_row[fitting]] = True
            if costs is not None:
                order = order[at_most(costs[:, order], costs[:, fitting[0]])]
            order = order[~is_found[of_row[order]]]
        size *= 2
    return np.concatenate([np.empty(0, dtype=np.int64), *found])


def _minimal_sets(evaluator: SetEvaluator, row: int, sets: MemberSets, some: Int64s) -> Bools:
    """Return ``[some]``: the minimal sets without which the pod fits the row."""
    numbers = sets.lengths
    has = np.zeros((len(sets), int(sets.entries.max(initial=0)) + 1), dtype=np.bool_)
    has[sets.owners, sets.entries] = True
    has = has[:, has.any(axis=0)]
    enough, beyond = np.zeros(len(sets), dtype=np.bool_), np.zeros(len(sets), dtype=np.bool_)
    for number in range(1, int(numbers[some].max(initial=0)) + 1):
        candidates = some[(numbers[some] == number) & ~beyond[some]]
        fitting = candidates[evaluator.refused(np.full(len(candidates), row), sets.only(candidates)) == 0]
        enough[fitting] = True
        for found in fitting.tolist():
            beyond |= (has | ~has[found]).all(axis=1) & (numbers > number)
    return enough[some]
