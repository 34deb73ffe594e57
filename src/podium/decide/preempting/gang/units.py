"""Units of victims for a gang with their dependents, and the solutions found, without victims that are not needed.

Dependence is the same as for a single preemptor (`podium.decide.preempting.wide.dependents`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from podium.cluster.arrays import Bools, Int64s, Lists
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.ranking import PreemptionRanking
from podium.decide.preempting import eligibility
from podium.decide.preempting.criteria import AFFINITY, AFFINITY_KEPT, CostColumn, SetCosts
from podium.decide.preempting.gang.gang import AffinityPartners, GangDomain, GangTransaction, MemberRow, placements_hold
from podium.decide.preempting.reprieve import irreducible
from podium.decide.preempting.wide.dependents import Dependents

Unit = tuple[PodRecord, ...]
"""Pods that are victims together, the most important first: one pod, or a whole group."""


class VictimUnits:
    """The units that a gang may disrupt, in the cluster as of creation."""

    def __init__(
        self,
        cluster: Cluster,
        ranking: PreemptionRanking,
        asker: PodRecord,
        may_disrupt: eligibility.VictimFilter | None,
        *,
        with_dependents: bool = False,
    ) -> None:
        """``asker`` represents the gang, with its priority. ``with_dependents``: dependents of victims go, too."""
        self._cluster = cluster
        self._pool = pool = eligibility.victim_pool(cluster, ranking, asker, may_disrupt)
        wholes = eligibility.WholeGroups(cluster)
        dependents = Dependents(cluster, pool, by_affinity=with_dependents, wholes=wholes, priority=asker.priority)
        # By uid, the group with which a pod goes; () if the group may not go.
        self._whole_of: dict[str, Unit] = {}
        for key in wholes.keys:
            mates = dependents.mates(key)
            whole = (
                ()
                if eligibility.NOT_IN_POOL in mates
                else tuple(cluster.pods.record(pool.slots.item(mate)) for mate in mates)
            )
            uids = (cluster.pods.record(slot).uid for slot in wholes.slots_of(key).tolist())
            self._whole_of.update(dict.fromkeys(uids, whole))
        has_wholes = any(len(whole) != 1 for whole in self._whole_of.values())
        depended_on = np.flatnonzero(dependents.are_of(np.arange(len(pool)), by_affinity=True)).tolist()
        # True if pods may depend on pods of other units; and true if any pods are evicted together at all.
        self.has_dependents = bool(depended_on)
        self.go_along = has_wholes or self.has_dependents
        self._dependents = dependents
        self._pods = [cluster.pods.record(slot) for slot in pool.slots.tolist()] if self.has_dependents else []
        self._place_of = {pod.uid: place for place, pod in enumerate(self._pods)}
        self._depended_on = frozenset(depended_on)
        # Pods that may not be victims, since a pod that depends on them may not.
        self._needed = {self._pods[place].uid for place in depended_on if dependents.of([place]) is None}

    def __len__(self) -> int:
        """Return the number of units, or more."""
        return len(self._pool)

    def all(self) -> list[Unit]:
        """Return all units, ordered by their most important pods."""
        return self.of(map(self._cluster.pods.record, self._pool.slots.tolist()))

    def few(self, most: int) -> list[Unit] | None:
        """Return all units; None if there are more than ``most``."""
        if len(self) - len(self._whole_of) > most:
            return None
        units = self.all()
        return units if len(units) <= most else None

    def of(self, pods: Iterable[PodRecord]) -> list[Unit]:
        """Return the units of some pods that may be victims, in that order; a group once."""
        units = (self._whole_of.get(pod.uid, (pod,)) for pod in pods)
        return list({unit[0].uid: unit for unit in units if unit}.values())

    def may_go(self, pod: PodRecord) -> bool:
        """Return whether a pod that may be a victim alone may be one with its group and dependents."""
        return pod.uid not in self._needed and self._whole_of.get(pod.uid) != ()

    def filter(self, further: eligibility.VictimFilter | None) -> eligibility.VictimFilter | None:
        """Extend a filter: pods are no victims if their group or dependents may not go."""
        if not self.go_along:
            return further

        def allowed(_pod: PodRecord, slots: Int64s) -> Bools:
            records = map(self._cluster.pods.record, slots.tolist())
            return np.fromiter(map(self.may_go, records), dtype=np.bool_, count=len(slots))

        return eligibility.both_allow(further, allowed)

    def closed(self, pods: Iterable[PodRecord]) -> list[PodRecord] | None:
        """Return the pods of permitted units with their dependents; None if one of these may not be a victim."""
        pods = list(pods)
        places = sorted(self._place_of[pod.uid] for pod in pods) if self.has_dependents else []
        if self._depended_on.isdisjoint(places):
            return pods
        found = self._dependents.of(places)
        return None if found is None else [self._pods[place] for place in sorted(found)]

    def dependences(self, victims: Iterable[PodRecord]) -> dict[str, str]:
        """Return, by uid, the other victim (its key) that a victim requires nearby."""
        found: dict[str, str] = {}
        places = [self._place_of[pod.uid] for pod in victims] if self.has_dependents else []
        for place in sorted(self._dependents.depend().intersection(places)):
            reason = self._dependents.reason(place, places)
            if reason is not None and reason.keys:
                found[self._pods[place].uid] = self._pods[reason.of].key
        return found

    def is_closed(self, pods: list[PodRecord]) -> bool:
        """Return whether no other pod depends on some units."""
        if not self.has_dependents:
            return True
        found = self.closed(pods)
        return found is not None and len(found) == len(pods)

    def pods_of(self, units: Iterable[Unit]) -> list[PodRecord]:
        """Return the pods of units that may go, with their dependents, the most important first."""
        found = self.closed(self.ordered(pod for unit in units for pod in unit))
        if found is None:
            raise AssertionError("a pod goes that may not be a victim")
        return found

    def ordered(self, pods: Iterable[PodRecord]) -> list[PodRecord]:
        """Return pods that may be victims, the most important first, each once."""
        index_of = self._pool.index_of
        by_place = {int(index_of[pod.slot]): pod for pod in pods}
        return [by_place[place] for place in sorted(by_place)]


def union(units: Iterable[Unit]) -> list[PodRecord]:
    """Return the pods of some units."""
    return [pod for unit in units for pod in unit]


Rank = tuple[bool, tuple[int, ...], int]
"""The order of solutions: whether victims leave a member alone, their cost, and their number."""


@dataclass(frozen=True, slots=True, eq=False)
class GangSolution:
    """Rows for members, and victims; ``violating`` are the victims (uids) beyond what budgets allow.

    ``is_alone``: none of the pods that a member requires nearby is left.
    """

    victims: list[PodRecord]
    placements: list[MemberRow]
    domain: GangDomain
    cost: tuple[int, ...] = ()
    is_alone: bool = False
    violating: frozenset[str] = frozenset()

    @property
    def rank(self) -> Rank:
        """The order of solutions; smaller is better."""
        return self.is_alone, self.cost, len(self.victims)


@dataclass(slots=True, eq=False)
class GangSolutions:
    """All solutions found, except those with victims beyond budgets that are required.

    Costs are computed when all changes are rolled back. ``proven`` is the best of all that exist, if all were tried.
    """

    transaction: GangTransaction
    units: VictimUnits
    costs: SetCosts
    partners: AffinityPartners
    proven: GangSolution | None = None
    _all: list[GangSolution] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def best(self) -> GangSolution:
        """The best one; the first of equals."""
        return self.proven or min(self._all, key=lambda solution: solution.rank)

    @property
    def best_rank(self) -> Rank | None:
        """The rank of the best one; None if there is none."""
        return self.best.rank if self._all else None

    @property
    def are_without_victims(self) -> bool:
        """Return whether one needs no victims."""
        return bool(self._all) and not self.best.victims

    @property
    def criteria(self) -> tuple[CostColumn, ...]:
        """The columns of a stated cost, with that of affinity if partners count; () for kube-scheduler's."""
        stated = self.costs.stated
        if stated is None:
            return ()
        return (AFFINITY, *stated.criteria) if self.partners else stated.criteria

    def cost_of(self, solution: GangSolution) -> tuple[int, ...]:
        """Return the reported cost: first whether partners stay, if they count."""
        return (int(solution.is_alone), *solution.cost) if self.partners and solution.cost else solution.cost

    @property
    def deciding(self) -> str:
        """The last criterion that separated the best solution from some others; "" for none."""
        best, deciding = self.cost_of(self.best), ""
        words = self.costs.cost.words
        left = [cost for solution in self._all if solution is not self.best and (cost := self.cost_of(solution))]
        for index, word in enumerate(((AFFINITY_KEPT, *words) if self.partners else words) if best else ()):
            kept = [cost for cost in left if cost[index] == best[index]]
            if len(kept) < len(left):
                left, deciding = kept, word
        return deciding

    def of_each_domain(self) -> list[GangSolution]:
        """Return the best solution of each domain that differs from the best of all, in order."""
        best, found = self.best, dict[str, GangSolution]()
        for solution in sorted(self._all, key=lambda each: (each.is_alone, each.cost, each.domain.name)):
            if solution is not best and solution.victims != best.victims:
                found.setdefault(solution.domain.name, solution)
        return list(found.values())

    def add(
        self, units: Sequence[Unit], placements: list[MemberRow], domain: GangDomain, in_doubt: set[int] | None
    ) -> GangSolution:
        """Add a solution, without victims that are not needed; ``in_doubt`` None if all are known to be needed."""
        if in_doubt is not None and units:
            # Affinity partners of members are spared before all others, and then units that violate budgets.
            gone = self.units.pods_of(units)
            over, near = self._violating(gone), {pod.uid for pod in gone if self.partners.include(pod)}
            order = sorted(
                self.units.of(gone),
                key=lambda unit: (not any(pod.uid in near for pod in unit), not any(pod.uid in over for pod in unit)),
            )
            units = _irreducible_units(self.transaction, self.units, order, placements, in_doubt)
        victims, solution = self.units.pods_of(units), GangSolution([], placements, domain)
        if victims:
            cost = tuple(self.costs.of_pods([victims])[0][:, 0].tolist())
            is_alone = bool(self.partners) and self._come_alone(victims, placements)
            solution = GangSolution(victims, placements, domain, cost, is_alone, self._violating(victims))
        if not (self.costs.requires_budgets and solution.violating):
            self._all.append(solution)
        return solution

    def _come_alone(self, victims: Sequence[PodRecord], placements: Sequence[MemberRow]) -> bool:
        """Return whether a member finds none of the pods that it requires nearby, once victims are gone."""
        transaction, found = self.transaction, False
        transaction.roll_back(transaction.base)
        transaction.remove(victims)
        for member, row in placements:
            found = self.partners.leave_alone(member, row)
            if found or not transaction.try_member(member, row):
                break
        transaction.roll_back(transaction.base)
        return found

    def _violating(self, victims: Sequence[PodRecord]) -> frozenset[str]:
        slots = np.array([pod.slot for pod in victims], dtype=np.int64)
        found = eligibility.beyond_budgets(
            self.transaction.cluster, Lists(np.array([0, len(slots)], dtype=np.int64), slots)
        )
        return frozenset(victim.uid for victim, is_over in zip(victims, found.tolist(), strict=True) if is_over)


def _irreducible_units(
    transaction: GangTransaction,
    units: VictimUnits,
    some: Sequence[Unit],
    placements: Sequence[MemberRow],
    in_doubt: Collection[int],
) -> list[Unit]:
    """Return the units that members cannot do without where they are, tried in their order; changes are rolled back.

    A unit is spared with the dependents of no other unit. If filters answer for each row alone, and no pod depends on
    others, victims on rows that are not ``in_doubt`` are needed.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go (selectVictimsOnDomain: reprieveVictim).
    """
    transaction.roll_back(transaction.base)
    is_row_by_row = not units.has_dependents and transaction.are_row_local(member for member, _ in placements)

    def fits_without(others: list[Unit], unit: Unit) -> bool:
        rows = {pod.row for pod in unit}
        if not is_row_by_row:
            gone, concerned = [tuple(units.pods_of(others))], placements
        elif rows.isdisjoint(in_doubt):
            return False
        else:
            # Nothing changes on other rows.
            gone = [other for other in others if any(pod.row in rows for pod in other)]
            concerned = [placement for placement in placements if placement[1] in rows]
        holds = placements_hold(transaction, gone, concerned)
        transaction.roll_back(transaction.base)
        return holds

    return irreducible(some, fits_without, repeats=not is_row_by_row)
