"""Preemption for a gang: a node for as many members as are needed, and one set of victims over all nodes.

Members are placed one by one, where the next one costs least, in each domain; victims that are not needed in the end
stay. Then, if few enough pods may go, sets of them are tried in the order of their cost, so that the plan is optimal.
Filters are asked about the resulting cluster, including the members.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, which removes all pods that may go from the whole
cluster, places the gang, and spares pods one by one for the resulting places.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from podium.decide.cap import put_off_for, without_budgets
from podium.decide.preempting.criteria import SetCosts
from podium.decide.preempting.eligibility import alone_within_budgets, excluding, held_back, within_budgets
from podium.decide.preempting.gang.descent import Descent, DescentMode, OptionTables, VictimSearch, asker_for
from podium.decide.preempting.gang.gang import (
    LEAST_STEPS,
    AffinityPartners,
    Gang,
    GangDomain,
    GangTransaction,
    MemberRow,
    gang_domains,
    gang_ineligible_reason,
    placements_hold,
)
from podium.decide.preempting.gang.packing import ExhaustiveVictimSearch, GangPacking, MemberShapes, first_packing
from podium.decide.preempting.gang.units import GangSolution, GangSolutions, Unit, VictimUnits, union
from podium.decide.preempting.preemption import PreemptionOptions
from podium.decide.preempting.preemption_plan import GangCandidate, GangPlan, SearchEffort
from podium.decide.preempting.trials import Trials
from podium.decide.preempting.wide.wide_search import WideSettings
from podium.framework.pre_filters import EVERYWHERE, GroupHandle

_LOWEST = np.iinfo(np.int64).min
# The maximum number of domains without improvement; the others are then left out.
_MOST_IN_VAIN = 8
# The first search without victims gets one such part of the steps.
_SHARE_WITHOUT = 4
# The maximum number of searches for a candidate whose victims budgets allow.
_MOST_ROUNDS = 8


def plan_gang(
    handle: GroupHandle, gang: Gang, trials: Trials, options: PreemptionOptions, *, most_steps: int = 100_000
) -> GangPlan:
    """Plan preemption for a gang if too few of its members fit now.

    ``options`` say which pods may be victims, and how victims are compared. At most ``most_steps`` steps are begun;
    `GangTransaction` counts them. Raises PluginError if a plugin fails.
    """
    if reason := gang_ineligible_reason(handle.cluster, gang):
        return GangPlan(False, reason)

    def planned(with_options: PreemptionOptions) -> GangPlan:
        with GangTransaction(handle, gang) as transaction:
            search = GangSearch(transaction, gang, trials, with_options, most_steps)
            search.run()
            return search.plan()

    plan = planned(options)
    if plan.chosen is None and options.requires_budgets and len(handle.cluster.budgets):
        beyond = planned(replace(options, requires_budgets=False))
        if beyond.chosen is None:
            return plan
        return plan.held_back_by(held_back(handle.cluster, "", beyond.chosen.victims))
    put_off = None if plan.chosen is None else put_off_for(handle.cluster, plan.chosen.victims)
    if put_off is None:
        return plan
    others = planned(replace(options, may_disrupt=without_budgets(handle.cluster, options.may_disrupt)))
    if others.chosen is not None:
        return others
    return GangPlan(True, put_off=put_off, message=f"preemption: {put_off}", criteria=plan.criteria, search=plan.search)


class GangSearch:
    """One search for the victims of a gang."""

    def __init__(
        self, transaction: GangTransaction, gang: Gang, trials: Trials, options: PreemptionOptions, most_steps: int
    ) -> None:
        cluster = transaction.cluster
        self._transaction = transaction
        self._gang = gang
        self._trials = trials
        self._wide = WideSettings() if options.wide is None else options.wide.settings
        self._may_disrupt = options.may_disrupt
        running = (cluster.placed.get(uid) for uid in gang.running)
        own = [*gang.members, *(record for record in running if record is not None)]
        if min(pod.priority for pod in own) < gang.priority:
            self._may_disrupt = excluding(cluster, gang.own, self._may_disrupt)
        if options.requires_budgets:
            self._may_disrupt = alone_within_budgets(cluster, self._may_disrupt)
        self._most_steps = most_steps
        self._costs = SetCosts(transaction.handle, options.cost, requires_budgets=options.requires_budgets)
        asker = asker_for(gang.members[0], gang.priority)
        self._units = VictimUnits(
            cluster, trials.ranking, asker, self._may_disrupt, with_dependents=self._wide.with_dependents
        )
        self._partners = AffinityPartners(transaction, gang, are_kept=self._wide.keeps_partners)
        self._solutions = GangSolutions(transaction, self._units, self._costs, self._partners)
        self._shapes = MemberShapes(transaction, gang)
        self._tables = self._option_tables(frozenset())
        self._domains = gang_domains(cluster, gang)
        # True if a descent that ends too early proves that there is no solution. Nominated pods may count for a member
        # that do not count for the gang's priority.
        self._is_proof = (
            self._shapes.any_place_will_do
            and gang.members[0].priority == gang.priority
            and not self._units.go_along
            and not self._costs.requires_budgets
        )
        # True if victims are known to be needed.
        self._is_needed = False
        self._domains_without_solution = 0
        self._left_out = 0
        self._is_complete = False

    def run(self) -> None:
        """Search for solutions, at first for one without victims."""
        if not self._shapes.any_place_will_do and self._fits_rearranged(self._most_steps // _SHARE_WITHOUT):
            return
        in_vain, solutions = 0, self._solutions
        for number, domain in enumerate(self._ordered_domains()):
            is_over = self._transaction.steps >= self._most_steps or solutions.are_without_victims
            if is_over or (solutions and in_vain >= _MOST_IN_VAIN):
                self._left_out = len(self._domains) - number
                break
            best = solutions.best_rank
            self._try(domain)
            in_vain = 0 if solutions.best_rank != best else in_vain + 1
        if self._domains_without_solution == len(self._domains) or solutions.are_without_victims:
            self._is_complete = True
            return
        if not self._is_needed and self._fits_rearranged(self._most_steps):
            return
        sets = ExhaustiveVictimSearch(
            self._shapes, self._units, self._costs, self._domains, self._partners, self._most_steps
        )
        found = sets.best(solutions.best_rank)
        self._is_complete = self._is_needed and not sets.is_cut
        if found is not None and (self._is_complete or sets.grows):
            units, placements, domain = found
            solutions.proven = solutions.add(units, placements, domain, None)

    def plan(self) -> GangPlan:
        effort = SearchEffort(self._transaction.steps, self._most_steps, self._left_out, self._is_complete)
        gang, solutions = self._gang, self._solutions
        if not solutions:
            members = f"{gang.needed} members of {gang.key}"
            where = "" if gang.domains == EVERYWHERE else " in one domain"
            if not len(self._units):
                nothing = "No preemption victims found for incoming preemptor"
            elif self._is_complete:
                nothing = f"{members} would not fit{where} with all less important pods gone that may go"
            else:
                nothing = f"no room for {members}{where} was found within maxSearchSteps, {self._most_steps}"
            return GangPlan(True, message=f"preemption: {nothing}", criteria=solutions.criteria, search=effort)
        return GangPlan(
            True,
            chosen=self._candidate(solutions.best, self._with_further_members(solutions.best)),
            alternatives=tuple(self._candidate(found, found.placements) for found in solutions.of_each_domain()),
            criterion=solutions.deciding,
            criteria=solutions.criteria,
            search=effort,
        )

    def _fits_rearranged(self, most_steps: int) -> bool:
        """Return whether members fit without victims if they do not go, one by one, where each prefers to be."""
        domain, placements, is_cut = first_packing(self._shapes, self._domains, most_steps)
        self._is_needed = domain is None and not is_cut
        if domain is None:
            return False
        self._solutions.proven = self._solutions.add([], placements, domain, None)
        self._is_complete = True
        return True

    def _try(self, domain: GangDomain) -> None:
        """Search in one domain, first beside the members' partners if they have any.

        If budgets are required, victims that they do not allow are spared in further searches.
        """
        spared: frozenset[str] = frozenset()
        for _ in range(_MOST_ROUNDS):
            found = self._descend_beside(self._partners, domain, spared) if self._partners else None
            if found is None or found.is_alone:
                found = self._descend_beside(None, domain, spared)
            if found is None or not (self._costs.requires_budgets and found.violating):
                break
            spared |= found.violating

    def _descend_beside(
        self, partners: AffinityPartners | None, domain: GangDomain, spared: frozenset[str]
    ) -> GangSolution | None:
        """Return the solution of a descent, and of a second one that uses its cost; or one with all pods gone."""
        lowest = np.full(len(self._costs.cost.words), _LOWEST, dtype=np.int64)
        first, may_be_better = self._down(DescentMode(domain.allowed, lowest, partners=partners), domain, spared)
        if first is None and self._is_proof and self._transaction.steps < self._most_steps:
            self._domains_without_solution += 1
            return None
        if first is None:
            return self._with_all_gone(partners, domain, spared)
        if may_be_better:
            floors = np.where(self._costs.are_largest, np.array(first.cost), lowest)
            mode = DescentMode(domain.allowed, floors, makes_room=True, partners=partners)
            again, _ = self._down(mode, domain, spared)
            return first if again is None or first.rank <= again.rank else again
        return first

    def _down(self, mode: DescentMode, domain: GangDomain, spared: frozenset[str]) -> tuple[GangSolution | None, bool]:
        """Return the solution of one descent, and whether another mode may give a cheaper one."""
        transaction = self._transaction
        descent = Descent(self._option_tables(spared) if spared else self._tables, mode)
        # Victims for a later member may be pods that an earlier one requires nearby.
        holds = descent.run() and (
            transaction.are_row_local(member for member, _ in descent.placements)
            or placements_hold(transaction, [descent.victims], descent.placements)
        )
        transaction.roll_back(transaction.base)
        if not holds:
            return None, False
        largest = np.array([key for key in descent.keys if key], dtype=np.int64).reshape(-1, len(mode.floors))
        are_largest = self._costs.are_largest
        differ = bool((largest[:, are_largest] != largest[:1, are_largest]).any())
        found = self._solutions.add(self._units.of(descent.victims), descent.placements, domain, descent.in_doubt)
        return found, bool(found.victims) and self._gang.needed > 1 and (differ or descent.makes_room)

    def _with_all_gone(
        self, partners: AffinityPartners | None, domain: GangDomain, spared: frozenset[str]
    ) -> GangSolution | None:
        """Return the solution where all pods go that may, the least important first, until the gang fits."""
        transaction, gang = self._transaction, self._gang
        if len(self._units) * gang.needed * LEAST_STEPS > self._most_steps - transaction.steps:
            return None
        units = [unit for unit in self._units.all() if self._may_go(unit, spared)]
        if partners is not None:
            units = [unit for unit in units if not any(map(partners.include, unit))]
        for priority in sorted({unit[0].priority for unit in units}):
            gone = [unit for unit in units if unit[0].priority <= priority]
            victims = self._units.closed(self._units.ordered(union(gone)))
            if victims is None or any(pod.uid in spared for pod in victims):
                return None
            transaction.remove(victims)
            placements = GangPacking(self._shapes, domain.allowed, self._most_steps, partners).run()
            transaction.roll_back(transaction.base)
            if placements is not None:
                return self._solutions.add(gone, placements, domain, {pod.row for pod in victims})
        return None

    def _may_go(self, unit: Unit, spared: frozenset[str]) -> bool:
        closed = self._units.closed(unit) if self._units.has_dependents else list(unit)
        return closed is not None and not any(pod.uid in spared for pod in closed)

    def _option_tables(self, spared: frozenset[str]) -> OptionTables:
        cluster, units = self._transaction.cluster, self._units
        allowed = units.filter(self._may_disrupt)
        allowed = excluding(cluster, spared, allowed) if spared else allowed
        allowed = within_budgets(cluster, allowed) if self._costs.requires_budgets else allowed
        inputs = self._transaction, self._gang, self._most_steps, self._trials, self._costs
        return OptionTables(VictimSearch(*inputs, units, allowed, self._wide, spared))

    def _ordered_domains(self) -> list[GangDomain]:
        """Return the domains by the cost of the last of the needed members there alone, then by name."""
        if len(self._domains) == 1:
            return self._domains
        table = self._tables.of(self._gang.members[0])
        order = np.lexsort(table.keys[::-1])
        size = self._transaction.cluster.nodes.count
        ranks = np.full(size, size, dtype=np.int64)
        ranks[table.rows[order]] = np.arange(len(order))
        ranks[table.free] = -1

        def last_rank(domain: GangDomain) -> int:
            theirs = np.sort(ranks[np.flatnonzero(domain.allowed)])
            theirs = theirs[theirs < size]
            return int(theirs[min(self._gang.needed, len(theirs)) - 1]) if len(theirs) else size

        return sorted(self._domains, key=lambda domain: (last_rank(domain), domain.name))

    def _candidate(self, found: GangSolution, placements: Sequence[MemberRow]) -> GangCandidate:
        name = self._transaction.cluster.nodes.name
        return GangCandidate(
            tuple((member, name(row)) for member, row in placements),
            tuple(found.victims),
            len(found.violating),
            found.domain.name,
            self._solutions.cost_of(found),
            self._units.dependences(found.victims),
        )

    def _with_further_members(self, found: GangSolution) -> list[MemberRow]:
        """Return the placements of a solution, and those of further members that fit beside them."""
        transaction, gang = self._transaction, self._gang
        gone = [found.victims]
        placed = {member.uid for member, _ in found.placements}
        rest = [member for member in gang.members if member.uid not in placed]
        if not rest or not placements_hold(transaction, gone, found.placements):
            transaction.roll_back(transaction.base)
            return found.placements
        further = []
        for member in rest:
            _, rows = transaction.fitting(member)
            rows = rows[found.domain.allowed[rows]]
            hashes = transaction.cluster.nodes.name_hash[rows]
            if len(rows) and transaction.try_member(member, row := int(rows[hashes.argmin()])):
                further.append((member, row))
        place = {member.uid: number for number, member in enumerate(gang.members)}
        both = sorted([*found.placements, *further], key=lambda placement: place[placement[0].uid])
        # Members that are tried in between must not displace those that are needed.
        placements = both if placements_hold(transaction, gone, both) else found.placements
        transaction.roll_back(transaction.base)
        return placements
