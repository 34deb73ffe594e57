"""Exhaustive searches for a gang: all ways to place its members, and all sets of victims in the order of their cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.criteria import SetCosts
from podium.decide.preempting.gang.gang import AffinityPartners, Gang, GangDomain, GangTransaction, MemberRow
from podium.decide.preempting.gang.units import Rank, Unit, VictimUnits, union
from podium.decide.preempting.reprieve import at_most, cheapest_first
from podium.framework.handle import CycleState

# Sets of more units are not tried.
_MOST_UNITS = 14
# Free capacity is counted in such parts of a node's capacity.
_PARTS = 10_000
_MILLIONTHS = 1_000_000

MemberShape = tuple[int, int]
"""A member's class and priority: filters answer equally for members of equal shape."""


class MemberShapes:
    """The shapes of a gang's members, in the cluster before members came or victims left.

    ``are_independent``: filters answer for each row by that row, only capacity is reserved, and each nominated pod
    counts for all members or for none, so that the order of members does not matter. ``any_place_will_do``: members are
    also alike, so that it does not matter to the others which feasible node a member takes.
    """

    def __init__(self, transaction: GangTransaction, gang: Gang) -> None:
        self.transaction = transaction
        self.gang = gang
        self.members = {shape_of(member): member for member in reversed(gang.members)}
        """The first member of each shape."""
        self.are_independent = (
            transaction.are_row_local(self.members.values())
            and not transaction.reserves(gang.members)
            and not _are_nominations_between(transaction.cluster, gang)
        )
        self.any_place_will_do = self.are_independent and len(self.members) == 1
        self.in_order = gang.members
        """The members in the order of their placement: the largest first, if the order is free."""
        if self.are_independent:
            size = {shape: _size(transaction, member) for shape, member in self.members.items()}
            self.in_order = tuple(sorted(gang.members, key=lambda member: -size[shape_of(member)]))


def shape_of(member: PodRecord) -> MemberShape:
    """Return a member's shape."""
    return member.pod_class.id, member.priority


def _are_nominations_between(cluster: Cluster, gang: Gang) -> bool:
    """Return whether some nominated pod keeps room from one member and not from another, by their priorities.

    Then a member for which it does not count may come last where it could not come first.
    """
    if cluster.nominations.depend_on_pods():
        return True
    priorities = {member.priority for member in gang.members}
    lowest, highest, of = min(priorities), max(priorities), cluster.nominations.priority
    return lowest < highest and any(lowest <= of(pod) < highest for pod, _ in cluster.nominations.all())


def _size(transaction: GangTransaction, member: PodRecord) -> int:
    """Return the largest share of the largest node that a member requests of any resource, in millionths."""
    nodes = transaction.cluster.nodes
    shares = [
        amount * _MILLIONTHS // max(1, int(nodes.allocatable[resource, : nodes.count].max(initial=0)))
        for resource, amount in member.pod_class.requests.items()
    ]
    return max(shares, default=0)


def first_packing(
    shapes: MemberShapes, domains: Sequence[GangDomain], most_steps: int
) -> tuple[GangDomain | None, list[MemberRow], bool]:
    """Return the first domain in which enough members fit now, and where each goes; all changes are rolled back.

    None if there is none; and whether the steps did not suffice to try all ways before that.
    """
    is_cut = False
    for domain in domains:
        packing = GangPacking(shapes, domain.allowed, most_steps)
        placements = packing.run()
        shapes.transaction.roll_back(shapes.transaction.base)
        if placements is not None:
            return domain, placements, is_cut
        is_cut |= packing.is_cut
    return None, [], is_cut


@dataclass(slots=True, eq=False)
class GangPacking:
    """Places as many members as are needed on the rows ``allowed``, by trying all ways.

    Members of equal shape that reserve nothing are interchangeable. Each goes first where it leaves the least room. If
    ``partners`` are to be kept, no member comes alone. ``is_cut``: the steps did not suffice to try all ways.
    """

    shapes: MemberShapes
    allowed: Bools
    most_steps: int
    partners: AffinityPartners | None = None
    is_cut: bool = False
    _placements: list[MemberRow] = field(default_factory=list)
    _failed: set[tuple[int, frozenset[tuple[tuple[int, int], int]]]] = field(default_factory=set)
    _counter: Counter[tuple[int, int]] = field(default_factory=Counter)
    # By shape, ``[rows]``: which rows accept such a member now. Used if each row answers for itself.
    _fits: dict[MemberShape, Bools] = field(default_factory=dict)

    def run(self) -> list[MemberRow] | None:
        """Return where members go, in their order, and leave them there; None if too few find a place."""
        if self.shapes.are_independent and not self.shapes.any_place_will_do:
            for shape, member in self.shapes.members.items():
                fits = self._fits[shape] = np.zeros(len(self.allowed), dtype=np.bool_)
                fits[self.shapes.transaction.fitting(member)[1]] = True
        if not self._place_from(0):
            return None
        place = {member.uid: number for number, member in enumerate(self.shapes.gang.members)}
        return sorted(self._placements, key=lambda placement: place[placement[0].uid])

    def _place_from(self, number: int) -> bool:
        """Place the members from one on; return whether enough of all find a place."""
        gang, transaction = self.shapes.gang, self.shapes.transaction
        if len(self._placements) == gang.needed:
            return True
        if len(self._placements) + len(gang.members) - number < gang.needed:
            return False
        key = number, frozenset(self._counter.items())
        if key in self._failed:
            return False
        if transaction.steps >= self.most_steps:
            self.is_cut = True
            return False
        member = self.shapes.in_order[number]
        state, rows = self._rows_of(member)
        for row in self._ordered(member, rows).tolist():
            if self.partners is not None and self.partners.leave_alone(member, row):
                continue
            savepoint = transaction.savepoint()
            if transaction.put_member(state, member, row) and self._go_on_with(member, row, number):
                return True
            transaction.roll_back(savepoint)
            if self.shapes.any_place_will_do or self.is_cut:
                return False
        if self._place_from(number + 1):
            return True
        self._failed.add(key)
        return False

    def _go_on_with(self, member: PodRecord, row: int, number: int) -> bool:
        """Place the other members beside one that has its place."""
        place = member.pod_class.id if not member.made_claims else -2 - number, row
        before = {shape: bool(fits[row]) for shape, fits in self._fits.items()}
        for shape, fits in self._fits.items():
            only = np.array([row], dtype=np.int64)
            fits[row] = bool(len(self.shapes.transaction.fitting(self.shapes.members[shape], only)[1]))
        self._placements.append((member, row))
        self._counter[place] += 1
        if self._place_from(number + 1):
            return True
        self._placements.pop()
        self._counter[place] -= 1
        if not self._counter[place]:
            del self._counter[place]
        for shape, fits in self._fits.items():
            fits[row] = before[shape]
        return False

    def _rows_of(self, member: PodRecord) -> tuple[CycleState, Int64s]:
        """Return the prepared state of a member, and the rows that accept it now."""
        fits = self._fits.get(shape_of(member))
        if fits is None:
            return self.shapes.transaction.fitting(member)
        return self.shapes.transaction.pre_filtered(member)[0], np.flatnonzero(fits)

    def _ordered(self, member: PodRecord, rows: Int64s) -> Int64s:
        """Return the allowed rows: those first where it leaves the least room, then by the hashes of their names."""
        rows = rows[self.allowed[rows]]
        nodes, requests = self.shapes.transaction.cluster.nodes, member.pod_class.requests
        wanted = sorted(resource for resource, amount in requests.items() if amount > 0)
        room = np.zeros(len(rows), dtype=np.int64)
        if wanted:
            amounts = np.array([requests[resource] for resource in wanted], dtype=np.int64)
            offered: Int64s = nodes.allocatable[wanted][:, rows]
            free = offered - nodes.requested[wanted][:, rows] - amounts[:, None]
            room = (free * _PARTS // np.maximum(offered, 1)).sum(axis=0)
        ordered: Int64s = rows[np.lexsort((nodes.name_hash[rows], room))]
        return ordered


FoundSet = tuple[list[Unit], list[MemberRow], GangDomain]
"""Victims, where members go without them, and the domain that it is in."""


@dataclass(slots=True, eq=False)
class ExhaustiveVictimSearch:
    """Tries the sets of units that are better than the best known candidate: first beside the members' ``partners``.

    ``is_cut``: there were too many units, or the steps did not suffice for all sets. ``grows``: the cost of a set grows
    with it. Otherwise all minimal sets count, and the best known candidate is no limit.
    """

    shapes: MemberShapes
    units: VictimUnits
    costs: SetCosts
    domains: Sequence[GangDomain]
    partners: AffinityPartners | None
    most_steps: int
    is_cut: bool = False
    grows: bool = True
    _found: dict[int, FoundSet | None] = field(default_factory=dict)

    def best(self, limit: Rank | None) -> FoundSet | None:
        """Return the best set that is not empty; None if none is better than ``limit``."""
        units = self.units.few(_MOST_UNITS)
        if units is None:
            self.is_cut = True
            return None
        if not units:
            return None
        sets = _UnitSets(self.units, self.costs, units)
        self.grows = sets.grows
        if self.partners:
            found = self._first(sets, None if limit is None or limit[0] else limit)
            if found is not None or self.is_cut or (limit is not None and not limit[0]):
                return found
            self.partners = None
            self._found.clear()
        return self._first(sets, limit)

    def _first(self, sets: _UnitSets, limit: Rank | None) -> FoundSet | None:
        """Return the cheapest set without which the gang fits."""
        for mask in sets.in_order(limit):
            found = self._known(sets, mask)
            if found is not None and (self.grows or self._is_least(sets, mask)):
                return found
            if self.is_cut:
                return None
        return None

    def _is_least(self, sets: _UnitSets, mask: int) -> bool:
        """Return whether the gang fits without no part of a set."""
        part = (mask - 1) & mask
        while part:
            if sets.may_go[part] and (self._known(sets, part) is not None or self.is_cut):
                return False
            part = (part - 1) & mask
        return True

    def _known(self, sets: _UnitSets, mask: int) -> FoundSet | None:
        """Return where members go without a set, in the first domain where that is possible; the result is cached."""
        if mask in self._found:
            return self._found[mask]
        units, transaction = sets.of(mask), self.shapes.transaction
        self._found[mask] = None
        for domain in self.domains:
            transaction.remove(union(units))
            packing = GangPacking(self.shapes, domain.allowed, self.most_steps, self.partners)
            placements = packing.run()
            transaction.roll_back(transaction.base)
            self.is_cut |= packing.is_cut
            if placements is not None:
                self._found[mask] = units, placements, domain
            if placements is not None or self.is_cut:
                break
        return self._found[mask]


class _UnitSets:
    """All sets of some units, by mask, the least important as the lowest digit; ``may_go`` is ``[masks]``.

    ``grows``: no set with one unit more costs less.
    """

    def __init__(self, units: VictimUnits, costs: SetCosts, some: list[Unit]) -> None:
        self._units = some
        sets = [union(self.of(mask)) for mask in range(1, 1 << len(some))]
        self._costs, violations = costs.of_pods([units.ordered(pods) for pods in sets])
        self._sizes = np.array(list(map(len, sets)))
        self.grows = costs.cost.grows(has_negative=any(pod.priority < 0 for pod in union(some)))
        # A set with dependents outside it is covered by another set.
        self.may_go: Bools = np.array([False, *map(units.is_closed, sets)], dtype=np.bool_)
        if costs.requires_budgets:
            self.may_go[1:] &= violations == 0

    def of(self, mask: int) -> list[Unit]:
        last = len(self._units) - 1
        return [unit for place, unit in enumerate(self._units) if mask >> (last - place) & 1]

    def in_order(self, limit: Rank | None) -> list[int]:
        """Return the masks of sets that may go, by cost; if costs grow, only those that are below a limit."""
        costs, sizes = self._costs, self._sizes
        wanted = self.may_go[1:].copy()
        if limit is not None and self.grows:
            most = np.array(limit[1], dtype=np.int64)
            wanted &= at_most(costs, most) & ((costs != most[:, None]).any(axis=0) | (sizes < limit[2]))
        masks: list[int] = (cheapest_first(costs, sizes, wanted) + 1).tolist()
        return masks
