"""The potential and forced victims for a pod on each node, the pods that become victims with others, and costs of sets.

A pod depends on the pods that all of its required terms select. While one of these is in its domain of each term's
topology key it stays; when the last one leaves, it is a victim as well, and then the pods that depend on it. A pod that
its own terms select depends on no other: it may be the first of its group. Nor does a pod whose affinity did not hold
before. Pods of a group that is evicted as a whole (`WholeGroups`) become victims together.

Source: kube-scheduler-deep-dive.md ("if victim pod `server` has a required pod-affinity with a colocated victim pod
`database`, then default preemption should also remove `server` if it decides to remove `database`, but not vice
versa"); pkg/scheduler/framework/plugins/interpodaffinity/filtering.go (satisfyPodAffinity) for when affinity holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from podium.cluster import matchers, pods, selector_index
from podium.cluster.arrays import Bools, Int32s, Int64s, Lists, argsort_small, offsets, runs
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord
from podium.cluster.what_if_view import WhatIfView
from podium.decide.preempting.criteria import AFFINITY_KEPT, CRITERIA, SetCosts, VictimCost, VictimSets
from podium.decide.preempting.eligibility import NOT_IN_POOL, VictimPool, WholeGroups, beyond_budgets
from podium.decide.preempting.reprieve import NEEDS_PROTECTED, Preemptor
from podium.framework.handle import ANYWHERE, Effect, Reach, Reaches
from podium.framework.verdicts import Decoders


@dataclass(frozen=True, slots=True, eq=False)
class _DependentPods:
    """Running pods whose affinity holds by the same terms: members of the pool, or `NOT_IN_POOL`, and their rows.

    ``counts`` has, by the terms' topology keys, ``[codes]``: the number of pods in each domain that all terms select.
    """

    counts: Mapping[str, Int64s]
    members: Int64s
    rows: Int64s


@dataclass(frozen=True, slots=True)
class DependenceReason:
    """Why a pod is a victim too: the pod that left, and the topology keys; none for a pod of its group."""

    of: int
    keys: tuple[str, ...] = ()


class Dependents:
    """The pods that become victims with others: by affinity, if that is wanted, and with whole groups.

    It answers about the cluster as of creation, even after pods come and go, but for `mates` not asked for before.
    """

    def __init__(
        self,
        cluster: Cluster,
        pool: VictimPool,
        *,
        by_affinity: bool = True,
        wholes: WholeGroups | None = None,
        priority: int = 0,
    ) -> None:
        """``priority`` is the preemptor's: groups that state one as high stay."""
        self._nodes = cluster.nodes
        self._pool = pool
        self._key_of_whole = {} if wholes is None else wholes.key_of_class
        self._class_ids: Int64s = cluster.pods.pod_class[pool.slots].astype(np.int64)
        # By the id of a class, the pods that depend on its pods.
        self._of_class: dict[int, list[_DependentPods]] = {}
        self._groups: list[_DependentPods] = []
        for selected, classes in _dependent_classes(cluster).items() if by_affinity else ():
            counts = {
                term.topology_key: cluster.domain_counts(selected, term.topology_key).copy() for term in selected.terms
            }
            slots = np.sort(cluster.pods.slots_of(classes))
            rows = cluster.pods.row[slots].astype(np.int64)
            holds = (rows != pods.NO_ROW) & ~cluster.pods.terminating[slots]
            for key, count in counts.items():
                codes = cluster.nodes.labels(key).codes[rows]
                holds &= (codes != 0) & (count[codes] > 0)
            self._groups.append(_DependentPods(counts, pool.index_of[slots[holds]], rows[holds]))
            for class_id in cluster.matcher(selected).classes:
                self._of_class.setdefault(class_id, []).append(self._groups[-1])
        self.mates = cache(lambda key: [] if wholes is None else wholes.mates(key, priority, pool))
        """Returns the pods of a whole group (its key), as of the first call: see `WholeGroups.mates`."""

    def __bool__(self) -> bool:
        """Return whether any pod may become a victim with another."""
        return bool(self._of_class or self._key_of_whole)

    def are_of(self, members: Int64s, *, by_affinity: bool = False) -> Bools:
        """Return ``[members]``: the pods of the pool with which others may become victims; only those by affinity."""
        return np.isin(self._class_ids[members], [*self._of_class, *(() if by_affinity else self._key_of_whole)])

    def depend(self) -> frozenset[int]:
        """Return the pods of the pool that depend on others by affinity."""
        return frozenset(member for group in self._groups for member in group.members.tolist()) - {NOT_IN_POOL}

    def closed(self, sets: MemberSets) -> MemberSets:
        """Return the sets with all pods that depend on them."""
        concerned = sets.allowed & (sets.sums(self.are_of(sets.entries)) > 0)
        if not concerned.any():
            return sets
        lists, allowed = np.split(sets.entries, sets.starts[1:-1]), sets.allowed.copy()
        for position in np.flatnonzero(concerned).tolist():
            found = self.of(lists[position].tolist())
            allowed[position] = found is not None
            if found is not None:
                lists[position] = np.array(sorted(found), dtype=np.int64)
        return MemberSets(offsets(list(map(len, lists))), np.concatenate(lists), allowed)

    def of(self, members: list[int]) -> dict[int, DependenceReason | None] | None:
        """Return pods of the pool with their dependents, and why; None if one of these may not be a victim."""
        gone: dict[int, DependenceReason | None] = dict.fromkeys(members)
        left: Counter[tuple[_DependentPods, str, int]] = Counter()
        waiting = list(gone)
        while waiting:
            for index, reason in self._dependents_of(waiting.pop(0), left):
                if index == NOT_IN_POOL:
                    return None
                if index not in gone:
                    gone[index] = reason
                    waiting.append(index)
        return gone

    def reason(self, member: int, members: Iterable[int]) -> DependenceReason | None:
        """Return why a pod of the pool goes if the others of some pods do; None if it need not."""
        others = sorted(other for other in members if other != member)
        closed = self.of(others) if others else None
        return None if closed is None else closed.get(member)

    def _dependents_of(
        self, member: int, left: Counter[tuple[_DependentPods, str, int]]
    ) -> Iterator[tuple[int, DependenceReason]]:
        """Yield the pods that leave with a pod, and why; ``left`` counts the pods that left before, by domain."""
        class_id, row = int(self._class_ids[member]), int(self._pool.rows[member])
        for mate in self.mates(self._key_of_whole[class_id]) if class_id in self._key_of_whole else ():
            yield mate, DependenceReason(member)
        for group in self._of_class.get(class_id, ()):
            for key, count in group.counts.items():
                codes = self._nodes.labels(key).codes
                code = int(codes[row])
                left[group, key, code] += 1
                if code and count[code] == left[group, key, code]:
                    for dependent in group.members[codes[group.rows] == code].tolist():
                        yield dependent, DependenceReason(member, (key,))


def have_dependents(cluster: Cluster) -> bool:
    """Return whether any pod on a node may depend on another."""
    placed = cluster.pods.of_class
    return any(not placed.keys().isdisjoint(cluster.matcher(each).classes) for each in _dependent_classes(cluster))


def _dependent_classes(cluster: Cluster) -> dict[matchers.SelectedByTerms, list[int]]:
    """Return the classes (ids) of placed pods that depend on others, by all of their required terms."""
    found: dict[matchers.SelectedByTerms, list[int]] = {}
    terms = cluster.carried.affinity.all()
    for pod_class in cluster.classes.candidates([[(selector_index.AFFINITY, term) for term in terms]]) if terms else ():
        selected = matchers.SelectedByTerms(pod_class.required_affinity)
        if pod_class.id in cluster.pods.of_class and not selected.matches(pod_class, cluster.namespaces):
            found.setdefault(selected, []).append(pod_class.id)
    return found


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
        return cls(offsets(numbers), members[argsort_small(theirs)], codes, effect)


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
            # What the domains imply for their members.
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
        outcome = handle.filter_worlds(self._for_known if are_known else state, pod, worlds, pod.uid)
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
            order = places[argsort_small((owners[places] << 2) | last[places])]
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
