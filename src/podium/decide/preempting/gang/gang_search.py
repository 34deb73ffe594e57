"""The search for a gang's way out: down member by member in each domain, then through all sets where they are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.costs.protection import alone_within_budgets, within_budgets
from podium.decide.preempting.gang.all_sets import AllSets
from podium.decide.preempting.gang.costing import Costing
from podium.decide.preempting.gang.descent import Descent, Grounds, Manner, Step, asker_for
from podium.decide.preempting.gang.gang import EVERYWHERE, Gang
from podium.decide.preempting.gang.gang_plan import GangPlan, Way
from podium.decide.preempting.gang.openings import Taking
from podium.decide.preempting.gang.packing import Packing, any_place_will_do
from podium.decide.preempting.gang.play import LEAST_STEPS, Play
from podium.decide.preempting.gang.reprieve import needed, stands
from podium.decide.preempting.gang.units import Unit, Units, filter_of, union
from podium.decide.preempting.gang.world import World, worlds_of
from podium.decide.preempting.preemption import PreemptionOptions
from podium.decide.preempting.trials import Trials, VictimFilter
from podium.decide.preempting.victims import with_budgets
from podium.decide.preempting.wide.wide_search import Search

_LOWEST = np.iinfo(np.int64).min
# After so many domains that were no better, the others are left out.
_MOST_IN_VAIN = 8
# So often another way is looked for whose victims budgets let go.
_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """A way out with its rows; ``violating`` are the victims (uids) beyond what budgets allow."""

    units: list[Unit]
    steps: list[Step]
    world: World
    victims: list[PodRecord]
    cost: tuple[int, ...]
    violations: int
    violating: frozenset[str]


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
        self._may_disrupt = _sparing_own(play.cluster, gang, options.may_disrupt)
        if options.requires_budgets:
            self._may_disrupt = alone_within_budgets(play.cluster, self._may_disrupt)
        self._most_steps = most_steps
        self._costing = Costing(play.handle, options.cost, requires_budgets=options.requires_budgets)
        self._asker = asker_for(gang.members[0], gang.priority)
        self._units = Units(play.cluster, trials.ranking, self._asker, self._may_disrupt)
        self._grounds = Grounds(play, self._taking(frozenset()), gang)
        self._worlds = worlds_of(play.cluster, gang)
        # The ways that were found, without those whose victims are more than budgets have to allow.
        self._ways: list[_Found] = []
        # The cheapest of all there are, where it was found by trying these.
        self._proven: _Found | None = None
        # Whether a way down that ends too early says that there is none, and in how many worlds there is none.
        # Nominated pods may count for a member that do not count for the gang's priority.
        self._is_proof = (
            any_place_will_do(play, gang)
            and gang.members[0].priority == gang.priority
            and not self._units.has_wholes
            and not self._costing.requires_budgets
        )
        self._without_a_way = 0
        self._left_out = 0
        self._is_complete = False

    def run(self) -> None:
        """Look for ways out."""
        in_vain = 0
        for number, world in enumerate(self._in_order()):
            if self._is_over or (self._ways and in_vain >= _MOST_IN_VAIN):
                self._left_out = len(self._worlds) - number
                break
            best = self._best_cost
            self._try(world)
            in_vain = 0 if self._best_cost != best else in_vain + 1
        if self._without_a_way == len(self._worlds) or (self._ways and not self._best.units):
            self._is_complete = True
            return
        sets = AllSets(self._play, self._gang, self._units, self._costing, self._worlds, self._most_steps)
        found = sets.best((self._best.cost, len(self._best.victims)) if self._ways else None)
        self._is_complete = not sets.is_cut
        if found is not None and (self._is_complete or sets.grows):
            units, steps, world = found
            self._proven = self._add(units, steps, world, None)

    def plan(self) -> GangPlan:
        """What it came to."""
        search = Search(self._play.steps, self._most_steps, self._left_out, self._is_complete)
        stated = self._costing.stated
        criteria = () if stated is None else stated.criteria
        if not self._ways:
            return GangPlan(True, message=self._nothing_found(), criteria=criteria, search=search)
        best = self._best
        others = [found for found in self._ways if found is not best]
        return GangPlan(
            True,
            chosen=self._way(best, with_others=True),
            alternatives=tuple(map(self._way, _of_each_domain(others, best))),
            criterion=_deciding(self._costing.words, best, others),
            criteria=criteria,
            search=search,
        )

    @property
    def _is_over(self) -> bool:
        return self._play.steps >= self._most_steps or bool(self._ways and not self._best.units)

    @property
    def _best(self) -> _Found:
        return self._proven or min(self._ways, key=lambda found: (found.cost, len(found.victims)))

    @property
    def _best_cost(self) -> tuple[int, ...] | None:
        return self._best.cost if self._ways else None

    def _try(self, world: World) -> None:
        """Look for a way out in one world; where budgets are required, without whom they do not let go."""
        spared: frozenset[str] = frozenset()
        for _ in range(_MOST_ROUNDS):
            found = self._descend(world, spared)
            if found is None or not (self._costing.requires_budgets and found.violating):
                break
            spared |= found.violating

    def _descend(self, world: World, spared: frozenset[str]) -> _Found | None:
        """The way down that is found member by member, and then once more by what it shows; or with everybody gone."""
        lowest = np.full(len(self._costing.words), _LOWEST, dtype=np.int64)
        first, may_be_better = self._down(Manner(world.allowed, lowest), world, spared)
        if first is None and self._is_proof and self._play.steps < self._most_steps:
            self._without_a_way += 1
            return None
        if first is None:
            return self._with_everybody_gone(world, spared)
        if may_be_better:
            floors = np.where(self._costing.are_largest, np.array(first.cost), lowest)
            again, _ = self._down(Manner(world.allowed, floors, makes_room=True), world, spared)
            return first if again is None or first.cost <= again.cost else again
        return first

    def _down(self, manner: Manner, world: World, spared: frozenset[str]) -> tuple[_Found | None, bool]:
        """The way down in a manner, and whether there may be a cheaper one in another."""
        play = self._play
        taking = self._taking(spared)
        grounds = self._grounds if not spared else Grounds(play, taking, self._gang)
        descent = Descent(play, taking, self._gang, grounds, manner, self._most_steps)
        is_down = descent.run()
        play.roll_back(play.base)
        if not is_down:
            return None, False
        largest = np.array([key for key in descent.keys if key], dtype=np.int64).reshape(-1, len(manner.floors))
        differ = bool((largest[:, self._costing.are_largest] != largest[:1, self._costing.are_largest]).any())
        found = self._add(self._units.of(descent.victims), descent.steps, world, descent.in_doubt)
        return found, bool(found.units) and self._gang.needed > 1 and (differ or descent.makes_room)

    def _with_everybody_gone(self, world: World, spared: frozenset[str]) -> _Found | None:
        """The way out where all go who may, the least important first, until the gang fits."""
        play, gang = self._play, self._gang
        if len(self._units) * gang.needed * LEAST_STEPS > self._most_steps - play.steps:
            return None
        units = [unit for unit in self._units.all() if not any(pod.uid in spared for pod in unit)]
        for priority in sorted({unit[0].priority for unit in units}):
            gone = [unit for unit in units if unit[0].priority <= priority]
            play.take(union(gone))
            steps = Packing(play, gang, world.allowed, self._most_steps).run()
            play.roll_back(play.base)
            if steps is not None:
                return self._add(gone, steps, world, {pod.row for unit in gone for pod in unit})
        return None

    def _add(self, units: Sequence[Unit], steps: list[Step], world: World, in_doubt: set[int] | None) -> _Found:
        """A way out, without victims that need not be; ``in_doubt`` None where that is known of all."""
        if in_doubt is not None and units:
            units = needed(self._play, self._to_spare(units), steps, in_doubt)
        found = self._costed(units, steps, world)
        if not (self._costing.requires_budgets and found.violating):
            self._ways.append(found)
        return found

    def _costed(self, units: Sequence[Unit], steps: list[Step], world: World) -> _Found:
        victims = self._units.ordered(union(units))
        if not victims:
            return _Found([], steps, world, [], (), 0, frozenset())
        costs, violations = self._costing.of([victims])
        violating = _violating(self._play, victims)
        names = frozenset(pod.uid for pod, is_over in zip(victims, violating, strict=True) if is_over)
        return _Found(list(units), steps, world, victims, tuple(costs[:, 0].tolist()), int(violations[0]), names)

    def _to_spare(self, units: Sequence[Unit]) -> list[Unit]:
        """Units in the order in which they are spared: whose budgets are violated first, then the most important."""
        victims = self._units.ordered(union(units))
        violating = _violating(self._play, victims)
        over = {pod.uid for pod, is_over in zip(victims, violating, strict=True) if is_over}
        in_order = self._units.of(victims)
        return sorted(in_order, key=lambda unit: not any(pod.uid in over for pod in unit))

    def _taking(self, spared: frozenset[str]) -> Taking:
        cluster = self._play.cluster
        allowed = filter_of(self._units, cluster, self._may_disrupt)
        allowed = _without(cluster, spared, allowed) if spared else allowed
        allowed = within_budgets(cluster, allowed) if self._costing.requires_budgets else allowed
        return Taking(self._trials, self._costing, self._units, allowed)

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

    def _way(self, found: _Found, *, with_others: bool = False) -> Way:
        name = self._play.cluster.nodes.name
        steps = self._with_the_rest(found) if with_others else found.steps
        placements = tuple((member, name(row)) for member, row in steps)
        return Way(placements, tuple(found.victims), found.violations, found.world.domain, found.cost)

    def _with_the_rest(self, found: _Found) -> list[Step]:
        """The members' rows, and those of further members that fit beside them as things are then."""
        play, placed = self._play, {member.uid for member, _ in found.steps}
        rest = [member for member in self._gang.members if member.uid not in placed]
        if not rest or not stands(play, found.units, found.steps):
            play.roll_back(play.base)
            return found.steps
        further = []
        for member in rest:
            _, rows = play.fitting(member)
            rows = rows[found.world.allowed[rows]]
            hashes = play.cluster.nodes.name_hash[rows]
            if len(rows) and play.put(member, row := int(rows[hashes.argmin()])):
                further.append((member, row))
        place = {member.uid: number for number, member in enumerate(self._gang.members)}
        both = sorted([*found.steps, *further], key=lambda step: place[step[0].uid])
        # Who is tried in between must not keep those off who are needed.
        steps = both if stands(play, found.units, both) else found.steps
        play.roll_back(play.base)
        return steps

    def _nothing_found(self) -> str:
        gang = self._gang
        if not len(self._units):
            return "preemption: No preemption victims found for incoming preemptor"
        whom = f"{gang.needed} members of {gang.key}"
        where = " in one domain" if gang.domains != EVERYWHERE else ""
        if self._is_complete:
            return f"preemption: {whom} would not fit{where} with all less important pods gone that may go"
        return f"preemption: no room for {whom}{where} was found within maxSearchSteps, {self._most_steps}"


def _sparing_own(cluster: Cluster, gang: Gang, further: VictimFilter | None) -> VictimFilter | None:
    """Lets be victims whom ``further`` does, and no member of the gang, some of which may be less important than it."""
    waiting = min(member.priority for member in gang.members) < gang.priority
    running = any(
        record.priority < gang.priority for uid in gang.running if (record := cluster.placed.get(uid)) is not None
    )
    return _without(cluster, gang.own, further) if waiting or running else further


def _without(cluster: Cluster, spared: frozenset[str], further: VictimFilter | None) -> VictimFilter:
    """Lets be victims whom ``further`` does (None: everybody), but for some pods (uids)."""

    def allowed(pod: PodRecord, slots: Int64s) -> Bools:
        found = np.ones(len(slots), dtype=np.bool_) if further is None else further(pod, slots)
        uids = (cluster.pods.record(slot).uid for slot in slots.tolist())
        free = np.fromiter((uid not in spared for uid in uids), dtype=np.bool_, count=len(slots))
        both: Bools = found & free
        return both

    return allowed


def _violating(play: Play, victims: Sequence[PodRecord]) -> list[bool]:
    slots = np.array([pod.slot for pod in victims], dtype=np.int64)
    starts = np.array([0, len(slots)], dtype=np.int64)
    found: list[bool] = with_budgets(play.cluster, np.zeros(1, dtype=np.int64), starts, slots).violating.tolist()
    return found


def _of_each_domain(others: Sequence[_Found], best: _Found) -> list[_Found]:
    """The cheapest way of each domain, the best way's own too where it is another; the cheapest first."""
    found: dict[str, _Found] = {}
    for way in sorted(others, key=lambda way: (way.cost, way.world.domain)):
        if way.victims != best.victims:
            found.setdefault(way.world.domain, way)
    return list(found.values())


def _deciding(words: Sequence[str], best: _Found, others: Sequence[_Found]) -> str:
    """The last criterion that told the best way from some others; "" for none."""
    deciding, left = "", [way for way in others if way.cost]
    for index, word in enumerate(words if best.cost else ()):
        kept = [way for way in left if way.cost[index] == best.cost[index]]
        if len(kept) < len(left):
            left, deciding = kept, word
    return deciding
