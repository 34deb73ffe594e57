"""The search for a gang's way out: down member by member in each domain, then through all sets where they are few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.decide.preempting.costs.protection import alone_within_budgets, within_budgets
from podium.decide.preempting.gang.all_sets import AllSets
from podium.decide.preempting.gang.beside import beside
from podium.decide.preempting.gang.costing import Costing
from podium.decide.preempting.gang.descent import Descent, Grounds, Manner, Step, asker_for
from podium.decide.preempting.gang.gang import EVERYWHERE, Gang
from podium.decide.preempting.gang.gang_plan import GangPlan, Way
from podium.decide.preempting.gang.openings import Taking
from podium.decide.preempting.gang.own import sparing_own, without
from podium.decide.preempting.gang.packing import Packing, first_packing
from podium.decide.preempting.gang.partners import Partners
from podium.decide.preempting.gang.play import LEAST_STEPS, Play
from podium.decide.preempting.gang.reprieve import is_local, stands
from podium.decide.preempting.gang.shapes import Shapes
from podium.decide.preempting.gang.units import Unit, Units, filter_of, union
from podium.decide.preempting.gang.ways import Found, Ways
from podium.decide.preempting.gang.world import World, worlds_of
from podium.decide.preempting.preemption import PreemptionOptions
from podium.decide.preempting.trials import Trials
from podium.decide.preempting.wide.wide_search import Search
from podium.decide.preempting.wide.wide_settings import WideSettings

_LOWEST = np.iinfo(np.int64).min
# After so many domains that were no better, the others are left out.
_MOST_IN_VAIN = 8
# Of the steps at first so many parts' one is for looking for a way where nobody has to go.
_SHARE_WITHOUT = 4
# So often another way is looked for whose victims budgets let go.
_MOST_ROUNDS = 8


class GangSearch:
    """One search. Costs are worked out when everything is taken back."""

    def __init__(
        self,
        play: Play,
        gang: Gang,
        trials: Trials,
        options: PreemptionOptions,
        most_steps: int,
    ) -> None:
        self._play = play
        self._gang = gang
        self._trials = trials
        self._wide = WideSettings() if options.wide is None else options.wide.settings
        self._may_disrupt = sparing_own(play.cluster, gang, options.may_disrupt)
        if options.requires_budgets:
            self._may_disrupt = alone_within_budgets(play.cluster, self._may_disrupt)
        self._most_steps = most_steps
        self._costing = Costing(play.handle, options.cost, requires_budgets=options.requires_budgets)
        asker = asker_for(gang.members[0], gang.priority)
        self._units = Units(
            play.cluster, trials.ranking, asker, self._may_disrupt, with_dependents=self._wide.with_dependents
        )
        self._partners = Partners(play, gang, are_kept=self._wide.keeps_partners)
        self._ways = Ways(play, self._units, self._costing, self._partners)
        self._shapes = Shapes(play, gang)
        self._grounds = Grounds(play, self._taking(frozenset()), gang)
        self._worlds = worlds_of(play.cluster, gang)
        # Whether a way down that ends too early says that there is none, and in how many worlds there is none.
        # Nominated pods may count for a member that do not count for the gang's priority.
        self._is_proof = (
            self._shapes.any_place_will_do
            and gang.members[0].priority == gang.priority
            and not self._units.go_along
            and not self._costing.requires_budgets
        )
        # Whether it is certain that somebody has to go.
        self._is_needed = False
        self._without_a_way = 0
        self._left_out = 0
        self._is_complete = False

    def run(self) -> None:
        """Look for ways out: at first for one where nobody has to go."""
        if not self._shapes.any_place_will_do and self._rearranged(self._most_steps // _SHARE_WITHOUT):
            return
        in_vain = 0
        for number, world in enumerate(self._in_order()):
            if self._is_over or (self._ways and in_vain >= _MOST_IN_VAIN):
                self._left_out = len(self._worlds) - number
                break
            best = self._ways.best_rank
            self._try(world)
            in_vain = 0 if self._ways.best_rank != best else in_vain + 1
        if self._without_a_way == len(self._worlds) or self._ways.are_without_victims:
            self._is_complete = True
            return
        if not self._is_needed and self._rearranged(self._most_steps):
            return
        sets = AllSets(
            self._play,
            self._shapes,
            self._units,
            self._costing,
            self._worlds,
            self._partners,
            self._most_steps,
        )
        found = sets.best(self._ways.best_rank)
        self._is_complete = self._is_needed and not sets.is_cut
        if found is not None and (self._is_complete or sets.grows):
            units, steps, world = found
            self._ways.proven = self._ways.add(units, steps, world, None)

    def plan(self) -> GangPlan:
        """What it came to."""
        search = Search(self._play.steps, self._most_steps, self._left_out, self._is_complete)
        ways = self._ways
        if not ways:
            return GangPlan(True, message=self._nothing_found(), criteria=ways.criteria, search=search)
        return GangPlan(
            True,
            chosen=self._way(ways.best, beside(self._play, self._gang, ways.best)),
            alternatives=tuple(self._way(found, found.steps) for found in ways.of_each_domain()),
            criterion=ways.deciding,
            criteria=ways.criteria,
            search=search,
        )

    def _rearranged(self, most_steps: int) -> bool:
        """Whether members fit as things are, placed otherwise than one by one where each would rather be."""
        world, steps, is_cut = first_packing(self._play, self._shapes, self._worlds, most_steps)
        self._is_needed = world is None and not is_cut
        if world is None:
            return False
        self._ways.proven = self._ways.add([], steps, world, None)
        self._is_complete = True
        return True

    @property
    def _is_over(self) -> bool:
        return self._play.steps >= self._most_steps or self._ways.are_without_victims

    def _try(self, world: World) -> None:
        """Look for a way out in one world; where budgets are required, without whom they do not let go."""
        spared: frozenset[str] = frozenset()
        for _ in range(_MOST_ROUNDS):
            found = self._descend(world, spared)
            if found is None or not (self._costing.requires_budgets and found.violating):
                break
            spared |= found.violating

    def _descend(self, world: World, spared: frozenset[str]) -> Found | None:
        """The way down beside the members' partners, where they have any; otherwise, or where there is none, any."""
        if self._partners:
            found = self._descend_beside(self._partners, world, spared)
            if found is not None and not found.is_alone:
                return found
        return self._descend_beside(None, world, spared)

    def _descend_beside(self, partners: Partners | None, world: World, spared: frozenset[str]) -> Found | None:
        """The way down that is found member by member, and then once more by what it shows; or with everybody gone."""
        lowest = np.full(len(self._costing.words), _LOWEST, dtype=np.int64)
        first, may_be_better = self._down(Manner(world.allowed, lowest, partners=partners), world, spared)
        if first is None and self._is_proof and self._play.steps < self._most_steps:
            self._without_a_way += 1
            return None
        if first is None:
            return self._with_everybody_gone(partners, world, spared)
        if may_be_better:
            floors = np.where(self._costing.are_largest, np.array(first.cost), lowest)
            again, _ = self._down(Manner(world.allowed, floors, makes_room=True, partners=partners), world, spared)
            return first if again is None or first.rank[:2] <= again.rank[:2] else again
        return first

    def _down(self, manner: Manner, world: World, spared: frozenset[str]) -> tuple[Found | None, bool]:
        """The way down in a manner, and whether there may be a cheaper one in another."""
        play = self._play
        taking = self._taking(spared)
        grounds = self._grounds if not spared else Grounds(play, taking, self._gang)
        descent = Descent(play, taking, self._gang, grounds, manner, self._most_steps)
        is_down = descent.run()
        # Those who went for a later member may be whom an earlier one requires to be near.
        stands_all = is_down and (
            is_local(play, descent.steps) or stands(play, [tuple(descent.victims)], descent.steps)
        )
        play.roll_back(play.base)
        if not stands_all:
            return None, False
        largest = np.array([key for key in descent.keys if key], dtype=np.int64).reshape(-1, len(manner.floors))
        differ = bool((largest[:, self._costing.are_largest] != largest[:1, self._costing.are_largest]).any())
        found = self._ways.add(self._units.of(descent.victims), descent.steps, world, descent.in_doubt)
        return found, bool(found.victims) and self._gang.needed > 1 and (differ or descent.makes_room)

    def _with_everybody_gone(self, partners: Partners | None, world: World, spared: frozenset[str]) -> Found | None:
        """The way out where all go who may, the least important first, until the gang fits."""
        play, gang = self._play, self._gang
        if len(self._units) * gang.needed * LEAST_STEPS > self._most_steps - play.steps:
            return None
        units = [unit for unit in self._units.all() if self._may_go(unit, spared)]
        if partners is not None:
            units = [unit for unit in units if not any(map(partners.are, unit))]
        for priority in sorted({unit[0].priority for unit in units}):
            gone = [unit for unit in units if unit[0].priority <= priority]
            victims = self._units.closed(self._units.ordered(union(gone)))
            if victims is None or any(pod.uid in spared for pod in victims):
                return None
            play.take(victims)
            steps = Packing(play, self._shapes, world.allowed, self._most_steps, partners).run()
            play.roll_back(play.base)
            if steps is not None:
                return self._ways.add(gone, steps, world, {pod.row for pod in victims})
        return None

    def _may_go(self, unit: Unit, spared: frozenset[str]) -> bool:
        """Whether a unit may go with all who depend on it."""
        if any(pod.uid in spared for pod in unit):
            return False
        if not self._units.has_dependents:
            return True
        closed = self._units.closed(unit)
        return closed is not None and not any(pod.uid in spared for pod in closed)

    def _taking(self, spared: frozenset[str]) -> Taking:
        cluster = self._play.cluster
        allowed = filter_of(self._units, cluster, self._may_disrupt)
        allowed = without(cluster, spared, allowed) if spared else allowed
        allowed = within_budgets(cluster, allowed) if self._costing.requires_budgets else allowed
        return Taking(self._trials, self._costing, self._units, allowed, self._wide, spared)

    def _in_order(self) -> list[World]:
        """The worlds in the order of what a member costs there of as many as are needed, then by name."""
        if len(self._worlds) == 1:
            return self._worlds
        ground = self._grounds.of(self._gang.members[0])
        order = np.lexsort(ground.keys[::-1])
        size = self._play.cluster.nodes.count
        ranks = np.full(size, size, dtype=np.int64)
        ranks[ground.rows[order]] = np.arange(len(order))
        ranks[ground.free] = -1
        found = []
        for world in self._worlds:
            theirs = np.sort(ranks[np.flatnonzero(world.allowed)])
            theirs = theirs[theirs < size]
            last = int(theirs[min(self._gang.needed, len(theirs)) - 1]) if len(theirs) else size
            found.append((last, world.domain, world))
        return [world for _, _, world in sorted(found, key=lambda each: each[:2])]

    def _way(self, found: Found, steps: Sequence[Step]) -> Way:
        name = self._play.cluster.nodes.name
        placements = tuple((member, name(row)) for member, row in steps)
        cost = self._ways.cost_of(found)
        whom = self._units.whom(found.victims)
        return Way(placements, tuple(found.victims), found.violations, found.world.domain, cost, whom)

    def _nothing_found(self) -> str:
        gang = self._gang
        if not len(self._units):
            return "preemption: No preemption victims found for incoming preemptor"
        whom = f"{gang.needed} members of {gang.key}"
        where = " in one domain" if gang.domains != EVERYWHERE else ""
        if self._is_complete:
            return f"preemption: {whom} would not fit{where} with all less important pods gone that may go"
        return f"preemption: no room for {whom}{where} was found within maxSearchSteps, {self._most_steps}"
