"""The potential and forced victims for a pod on each node, and the filters' answers and costs for sets of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int32s, Int64s, Lists, lexsort, offsets, runs
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord
from podium.cluster.what_if_view import WhatIfView
from podium.decide.preempting.criteria import AFFINITY_KEPT, CRITERIA, SetCosts, VictimCost, VictimSets
from podium.decide.preempting.eligibility import VictimPool, beyond_budgets
from podium.decide.preempting.reprieve import NEEDS_PROTECTED, Preemptor
from podium.framework.handle import ANYWHERE, Effect, Reach, Reaches
from podium.framework.verdicts import Decoders

# Facts about a row and a pod, as bits of one number.
_WANTED, _FORCED, _PARTNER, _OWN = 1, 2, 4, 8
_BITS = 4


@dataclass(frozen=True, slots=True, eq=False)
class MemberSets(Lists):
    """Sets of members of a `VictimPool`, ascending, the most important first.

    ``allowed`` is ``[sets]``: False if a member may not be a victim.
    """

    allowed: Bools

    @classmethod
    def at(cls, starts: Int64s, members: Int64s) -> MemberSets:
        """Return sets that are all allowed."""
        return cls(starts, members, np.ones(len(starts) - 1, dtype=np.bool_))

    def only(self, sets: Int64s) -> MemberSets:
        """Return some of the sets, in that order."""
        starts, places = self.places_of(sets)
        return MemberSets(starts, self.entries[places], self.allowed[sets])


NO_SETS = MemberSets.at(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class VictimPairs(Lists):
    """The pods that a preemptor may disrupt for each of ``rows``: members of a `VictimPool`, ascending.

    ``forced`` is ``[pairs]``: the pod must go for the preemptor to fit there. ``partner``: the preemptor requires such
    pods nearby. ``own``: the pod is on the row itself.
    """

    rows: Int64s
    forced: Bools
    partner: Bools
    own: Bools

    def only(self, positions: Int64s) -> VictimPairs:
        """Return the pairs of some of the rows, given by their positions."""
        starts, at = self.places_of(positions)
        return VictimPairs(
            starts, self.entries[at], self.rows[positions], self.forced[at], self.partner[at], self.own[at]
        )

    def sets(self, gone: Bools) -> MemberSets:
        """Return a set for each row, of the pairs that are ``gone``."""
        return MemberSets.at(offsets(self.sums(gone)), self.entries[gone])


@dataclass(frozen=True, slots=True, eq=False)
class PodsByDomain(Lists):
    """Members of a `VictimPool` by domain; ``codes`` are the domains of all rows, 0 for none."""

    codes: Int32s | Int64s
    effect: Effect | None = None

    @classmethod
    def of(
        cls, codes: Int32s | Int64s, pool: VictimPool, members: Int64s, effect: Effect | None = None
    ) -> PodsByDomain:
        """Group members by the codes of their rows."""
        theirs = codes[pool.rows[members]].astype(np.int64)
        members, theirs = members[theirs != 0], theirs[theirs != 0]
        numbers = np.bincount(theirs, minlength=int(codes.max(initial=0)) + 1)
        return cls(offsets(numbers), members[lexsort(theirs)], codes, effect)


class VictimDomains:
    """The potential victims for a pod, by the node where it would go."""

    def __init__(self, cluster: Cluster, pool: VictimPool, reaches: Reaches, *, across: bool) -> None:
        """Without ``across`` only pods on the pod's own node may be victims."""
        self._pool = pool
        self._across = across
        everything = np.arange(len(pool))
        self._found = [PodsByDomain.of(cluster.nodes.all_rows() + 1, pool, everything)]
        for reach in reaches.found:
            if across or reach.effect != "SomeGone":
                matching = cluster.matcher(reach.predicate).matching(cluster.pods.pod_class[pool.slots])
                if reach.predicate.live_only:
                    matching &= ~cluster.pods.terminating[pool.slots]
                codes = _codes(cluster, reach)[: cluster.nodes.count]
                self._found.append(PodsByDomain.of(codes, pool, np.flatnonzero(matching), reach.effect))
        if across and not reaches.is_known:
            self._found.append(PodsByDomain.of(np.ones(cluster.nodes.count, dtype=np.int64), pool, everything))

    def numbers(self, rows: Int64s) -> Int64s:
        """Return ``[rows]``: the number of potential victims, or more."""
        wanted = [found for found in self._found if found.effect != "Stay"] if self._across else self._found[:1]
        return sum((domains.lengths[domains.codes[rows]] for domains in wanted), np.zeros_like(rows))

    def forced_sets(self, rows: Int64s) -> Iterator[tuple[MemberSets, Int64s]]:
        """Yield sets of pods that must go, and ``[rows]``: the set for each row."""
        for domains in self._found:
            if domains.effect == "AllGone" and self._across:
                yield MemberSets.at(domains.starts, domains.entries), domains.codes[rows].astype(np.int64)

    def pairs(self, rows: Int64s) -> VictimPairs:
        shift = len(self._pool).bit_length()
        found = []
        for place, domains in enumerate(self._found):
            # The consequences of the domains for their members.
            facts = (0 if place else _OWN) | _FORCED * (domains.effect == "AllGone")
            if domains.effect == "Stay":
                facts |= _PARTNER
            elif self._across or not place:
                facts |= _WANTED
            starts, places = domains.places_of(domains.codes[rows])
            owners = Lists(starts, places).owners
            found.append((((owners << shift) | domains.entries[places]) << _BITS) | facts)
        marked = np.sort(np.concatenate(found))
        keys, bits = marked >> _BITS, marked & ((1 << _BITS) - 1)
        firsts = runs(keys)[:-1]
        if len(firsts) < len(keys):
            keys, bits = keys[firsts], np.bitwise_or.reduceat(bits, firsts)
        if not (wanted := bits & _WANTED != 0).all():
            keys, bits = keys[wanted], bits[wanted]
        starts = offsets(np.bincount(keys >> shift, minlength=len(rows)))
        forced, partner, own = bits & _FORCED != 0, bits & _PARTNER != 0, bits & _OWN != 0
        return VictimPairs(starts, keys & ((1 << shift) - 1), rows, forced, partner, own)


def _codes(cluster: Cluster, reach: Reach) -> Int32s | Int64s:
    """Return ``[rows]``: the domain of each row in which a filter looks at other pods, 0 for none."""
    if reach.key == ANYWHERE:
        return np.ones(cluster.nodes.count, dtype=np.int64)
    return cluster.nodes.labels(reach.key).codes


def may_have_to_leave(cluster: Cluster, reach: Reach, row: int, pod: PodRecord) -> bool:
    """Return whether a filter's answer for a row depends on a pod such that the pod may have to leave."""
    if reach.effect == "Stay" or (reach.predicate.live_only and pod.terminating):
        return False
    codes = _codes(cluster, reach)
    is_near = codes[row] != 0 and codes[row] == codes[pod.row]
    return bool(is_near) and pod.pod_class.id in cluster.matcher(reach.predicate).classes


def blocking_pods_elsewhere(cluster: Cluster, reaches: Reaches, row: int) -> list[PodRecord]:
    """Return the pods on other rows that may have to leave for a filter to accept a row, by slot."""
    found: set[int] = set()
    for reach in reaches.found:
        if reach.effect == "Stay":
            continue
        slots = cluster.pods.slots_of(cluster.matcher(reach.predicate).classes)
        rows, codes = cluster.pods.row[slots], _codes(cluster, reach)
        around = (rows != NO_ROW) & (rows != row) & (codes[rows] == codes[row]) & (codes[row] != 0)
        if reach.predicate.live_only:
            around &= ~cluster.pods.terminating[slots]
        found.update(slots[np.flatnonzero(around)].tolist())
    return [cluster.pods.record(slot) for slot in sorted(found)]


_MOST_WORLDS = 4_096
_VIOLATIONS = CRITERIA["BudgetViolations"]


class SetEvaluator:
    """Evaluates with the filters whether a pod fits rows without sets of victims. Each evaluation of a view is a step.

    ``kept`` are the pods that the preemptor requires nearby, if that is a criterion: a set that leaves none of them
    around the row costs more than any that leaves one. (The filters accept such a pod if it is then the first of its
    group.) If budgets are required, the fewest violations come before everything else.

    Sets are compared by ``criteria``, the most important first. The first ``bounding`` ones never decrease with one
    victim more; ``adds`` marks which of these are sums over the victims, while the others are at least the largest of
    the victims' values. If the cost ``grows``, no set with one victim more costs less. If it ``is_plain``, only the
    priority and the start of a pod count.
    """

    def __init__(
        self, preemptor: Preemptor, pool: VictimPool, costs: SetCosts, kept: Sequence[Reach] | None = None
    ) -> None:
        handle = preemptor.handle
        self.cluster = handle.cluster
        self.pool = pool
        self.decoders: Decoders = {}
        self.steps = 0
        self.set_costs = costs
        self.is_plain = costs.stated is None and not costs.requires_budgets and not len(handle.cluster.budgets)
        self._preemptor = preemptor
        self._for_known = handle.for_known_nodes(preemptor.state)
        self._kept = kept
        before = [_VIOLATIONS.words] * costs.requires_budgets + [AFFINITY_KEPT] * (kept is not None)
        self._before = len(before)
        self.criteria = (*before, *costs.cost.words)
        has_negative = bool(pool.priority.min(initial=0) < 0)
        self.bounding = len(before) + costs.cost.bounding(has_negative=has_negative)
        self.grows = costs.cost.grows(has_negative=has_negative)
        counted = costs.cost.criteria[: self.bounding - len(before)]
        self.adds = np.array([False] * len(before) + [criterion.adds for criterion in counted])
        self._floors = np.array([0] * len(before) + [criterion.floor for criterion in counted], dtype=np.int64)

    def refused(self, rows: Int64s, sets: MemberSets) -> Int64s:
        """Return ``[sets]``: 0 where the pod fits the row of the set without it, or else an entry of an `Outcome`."""
        refused = np.full(len(rows), NEEDS_PROTECTED, dtype=np.int64)
        candidates = np.flatnonzero(sets.allowed)
        for first in range(0, len(candidates), _MOST_WORLDS):
            some = candidates[first : first + _MOST_WORLDS]
            refused[some] = self.filtered(self.worlds(rows[some], sets.only(some)))
        return refused

    def filtered(self, worlds: WhatIfView, *, are_known: bool = False) -> Int64s:
        """Return ``[n]``: the answers for what-if views; ``are_known``: the pod fits their rows without some pods."""
        self.steps += len(worlds)
        handle, state, pod = self._preemptor.handle, self._preemptor.state, self._preemptor.pod
        outcome = handle.filter_what_if(self._for_known if are_known else state, pod, worlds, pod.uid)
        self.decoders.update(outcome.decoders)
        return outcome.refused

    def worlds(self, rows: Int64s, sets: MemberSets) -> WhatIfView:
        """Return the what-if views of some rows without the sets."""
        worlds = WhatIfView(self.cluster, rows, many=True)
        worlds.remove_anywhere(sets.owners, self.pool.slots[sets.entries])
        return worlds

    def costs(self, rows: Int64s, sets: MemberSets) -> Int64s:
        """Return ``[criteria, sets]``: the costs of the sets if the pod goes to these rows."""
        return self._columns(sets, np.zeros(len(self.criteria), dtype=np.int64), rows)

    def least(self, sets: MemberSets) -> Int64s:
        """Return ``[bounding, sets]``: lower bounds for sets that contain these, wherever the pod goes."""
        return self._columns(sets, self._floors)

    def costs_alone(self, members: Int64s) -> Int64s:
        """Return ``[criteria, members]``: the cost of each alone, wherever the pod goes."""
        sets = MemberSets.at(np.arange(len(members) + 1), members)
        return self._columns(sets, np.zeros(len(self.criteria), dtype=np.int64))

    def violations(self, sets: MemberSets) -> Int64s:
        """Return ``[sets]``: how many members would take more of a budget than is left."""
        return self.set_costs.violations(Lists(sets.starts, self.pool.slots[sets.entries]))

    def _columns(self, sets: MemberSets, of_empty_sets: Int64s, rows: Int64s | None = None) -> Int64s:
        """Return the first criteria, as many as there are values ``of_empty_sets``, which are those of empty sets.

        Without ``rows`` affinity counts as kept.
        """
        found = np.repeat(of_empty_sets[:, None], len(sets), axis=1)
        violations, before, cost = self.violations(sets), self._before, self.set_costs.cost
        if self.set_costs.requires_budgets:
            found[0] = violations
        if self._kept is not None and rows is not None:
            found[before - 1] = self._lonely(rows, sets)
        some = np.flatnonzero(sets.lengths)
        if len(some) and len(found) > before:
            stated = VictimSets(sets.starts, self.pool.slots[sets.entries], self._preemptor.facts, violations).only(
                some
            )
            found[before:, some] = VictimCost(cost.criteria[: len(found) - before]).columns(stated)
        return found

    def _lonely(self, rows: Int64s, sets: MemberSets) -> Int64s:
        """Return ``[sets]``: 1 if the last of the pods goes that the preemptor requires nearby."""
        lonely = np.zeros(len(sets), dtype=np.int64)
        classes = self.cluster.pods.pod_class[self.pool.slots[sets.entries]]
        theirs = self.pool.rows[sets.entries]
        for reach in self._kept or ():
            codes = self.cluster.nodes.labels(reach.key).codes
            around = codes[theirs] == codes[rows[sets.owners]]
            gone = sets.sums(around & self.cluster.matcher(reach.predicate).matching(classes))
            lonely[(gone > 0) & (self.cluster.domain_counts(reach.predicate, reach.key)[codes[rows]] == gone)] = 1
        return lonely

    def reprieve_order(self, pairs: VictimPairs, may_stay: Bools, *, partners_first: bool) -> Lists:
        """Return the pairs that ``may_stay``, by their places, in the order of reprieve on each row.

        As in kube-scheduler: pods that would violate a budget if all of a row's went, then by rank. With a stated cost,
        the dearest first. With ``partners_first`` the partners among them come first.
        """
        places, owners, violating = np.flatnonzero(may_stay), pairs.owners, self._violating(pairs)
        last = np.zeros(len(violating), dtype=np.int64)
        if self.set_costs.stated is None or self.set_costs.requires_budgets:
            last += 2 * ~violating
        if partners_first:
            last += ~pairs.partner
        if self.set_costs.stated is None:
            # The pairs of a row are in the order of their rank already.
            order = places[lexsort(owners[places], last[places])]
        else:
            columns, criteria = self.costs_alone(pairs.entries[places])[self._before :], self.set_costs.cost.criteria
            if _VIOLATIONS in criteria:
                columns[criteria.index(_VIOLATIONS)] = violating[places]
            order = places[np.lexsort((pairs.entries[places], *-columns[::-1], last[places], owners[places]))]
        return Lists(offsets(pairs.sums(may_stay)), order)

    def _violating(self, pairs: VictimPairs) -> Bools:
        """Return ``[pairs]``: the pods that would take more of a budget than is left if all of a row's went.

        The most important pods take first; the least important ones if budgets are required.
        """
        slots = self.pool.slots[pairs.entries]
        if not len(self.cluster.budgets):
            return np.zeros(len(slots), dtype=np.bool_)
        if not self.set_costs.requires_budgets:
            return beyond_budgets(self.cluster, Lists(pairs.starts, slots))
        backwards = Lists(len(slots) - pairs.starts[::-1], slots[::-1])
        return np.asarray(beyond_budgets(self.cluster, backwards)[::-1])
