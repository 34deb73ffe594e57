"""What preempting for each node comes to, where victims may be on other nodes, or depend on one another.

For each row there are those who have to go in any case: all whom an anti-affinity keeps apart from the pod, for one.
If that is enough, nothing cheaper is. Otherwise all who may be victims go, and are spared one by one. Rows are looked
at in the order of what they cost at least, and no further than a cheaper set can be. At last, where few enough pods are
left that may stay or go, all sets of them are tried, so that the answer is the best one.

Source: pod-preemption.md, "Supporting Cross Node Preemption?" and "Supporting Inter-Pod Affinity on lower priority
Pods?", which leave both out for what they would cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.costs.upstream import at_most
from podium.decide.preempting.costs.victim_cost import VictimCost
from podium.decide.preempting.trial_table import (
    WITHOUT_VICTIMS,
    TrialTable,
)
from podium.decide.preempting.trials import Trials, VictimFilter
from podium.decide.preempting.whole_groups import WholeGroups
from podium.decide.preempting.wide.awaited import awaits_others
from podium.decide.preempting.wide.dependents import Dependents, have_dependents
from podium.decide.preempting.wide.potential import Pairs, Potential, Takeable, takeable
from podium.decide.preempting.wide.reasons import reasons
from podium.decide.preempting.wide.reprieve import Reprieve
from podium.decide.preempting.wide.results import WideResults
from podium.decide.preempting.wide.sets import Asking, MemberSets, sets_of
from podium.decide.preempting.wide.settled import settled
from podium.decide.preempting.wide.subsets import MOST_FREE, best_set
from podium.framework.cycle_state import CycleState
from podium.framework.handle import Handle
from podium.framework.reach import Reaches

_MOST_PARTNERS = 8
_FEWEST_ROWS = 256
_FEW_ROWS = 512
_MOST_CELLS = 1 << 21


@dataclass(frozen=True, slots=True)
class WideSettings:
    """Where victims are looked for.

    ``across``: on other nodes than the pod's too. ``keeps_partners``: whom the pod requires to be near is no victim
    while there is another choice. ``with_dependents``: who depends on victims is one. ``whole_groups``: of groups that
    say so all pods go, or none. ``most_steps`` bounds the search.
    """

    across: bool = False
    keeps_partners: bool = False
    with_dependents: bool = False
    whole_groups: bool = False
    most_steps: int = 100_000

    def __bool__(self) -> bool:
        return self.across or self.keeps_partners or self.with_dependents or self.whole_groups


@dataclass(frozen=True, slots=True)
class Search:
    """How the victims were looked for: of ``most_steps`` so many were made, and so many nodes ``left_out`` for that.

    ``is_complete``: there is no cheaper choice than the one that was found, by the criteria.
    """

    steps: int
    most_steps: int
    left_out: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of the trials.

    ``may_disrupt`` None lets every pod of lower priority be a victim, ``cost`` None compares victims as kube-scheduler
    does. With ``requires_budgets`` no victims are more than budgets allow. Unless it ``is_detailed``, those rows are
    left out that cannot be the best.
    """

    may_disrupt: VictimFilter | None = None
    cost: VictimCost | None = None
    requires_budgets: bool = False
    is_detailed: bool = False


class WideTrials:
    """Tries preemption as its settings want it. Nothing is kept: each trial depends on the pods of many nodes."""

    def __init__(self, cluster: Cluster, trials: Trials, settings: WideSettings) -> None:
        self._cluster = cluster
        self._trials = trials
        self.settings = settings

    def concern(self, runner: Handle, state: CycleState, pod: PodRecord) -> bool:
        """Whether the victims for a pod may be others than those that are looked for on each node by itself."""
        settings = self.settings
        if not runner.is_row_local(state):
            reaches = runner.reaches(state, pod)
            stay = any(reach.effect == "Stay" for reach in reaches.found)
            if settings.across and (reaches.found or not reaches.is_known):
                return True
            if settings.keeps_partners and stay:
                return True
        if settings.with_dependents and have_dependents(self._cluster):
            return True
        return settings.whole_groups and bool(WholeGroups(self._cluster))

    def awaits_victims(self, runner: Handle, state: CycleState, pod: PodRecord, *, evicts: bool = False) -> bool:
        """Whether pods on other nodes that were preempted still terminate, and keep a nominated pod off its node.

        With ``evicts`` they are not marked as victims.
        """
        row = self._cluster.nodes.row_of.get(pod.nominated_node_name)
        if row is None or not self.settings.across or runner.is_row_local(state):
            return False
        return awaits_others(self._cluster, pod, row, runner.reaches(state, pod), evicts=evicts)

    def reasons(
        self, runner: Handle, state: CycleState, pod: PodRecord, row: int, victims: Sequence[PodRecord]
    ) -> dict[str, str]:
        """By uid, why victims have to go for a pod that comes to a row, where more than that row tells."""
        dependents = None
        if self.settings.with_dependents or self.settings.whole_groups:
            take = takeable(self._cluster, self._trials.ranking, pod, None)
            dependents = self._dependents(take, pod), take
        return reasons(self._cluster, runner.reaches(state, pod), row, victims, dependents)

    def on(
        self,
        runner: Handle,
        state: CycleState,
        pod: PodRecord,
        rows: Int64s,
        wanted: Wanted,
    ) -> tuple[TrialTable, Search]:
        """The trials on ``rows``, ascending."""
        take = takeable(self._cluster, self._trials.ranking, pod, wanted.may_disrupt)
        reaches = runner.reaches(state, pod)
        kept = [reach for reach in reaches.found if reach.effect == "Stay"] if self.settings.keeps_partners else None
        asking = Asking(runner, state, pod, take, kept, cost=wanted.cost, requires_budgets=wanted.requires_budgets)
        potential = Potential(self._cluster, take, reaches, across=self.settings.across)
        trial = _WideTrial(asking, potential, self._dependents(take, pod) or None, reaches, rows, self.settings)
        trial.run(detailed=wanted.is_detailed)
        return trial.table(), trial.search

    def _dependents(self, take: Takeable, pod: PodRecord) -> Dependents:
        """Who goes along with victims of a pod."""
        wholes = WholeGroups(self._cluster) if self.settings.whole_groups else None
        return Dependents(
            self._cluster, take, by_affinity=self.settings.with_dependents, wholes=wholes, priority=pod.priority
        )


class _WideTrial:
    """One search, for one pod. Positions are those in ``rows``."""

    def __init__(
        self,
        asking: Asking,
        potential: Potential,
        dependents: Dependents | None,
        reaches: Reaches,
        rows: Int64s,
        settings: WideSettings,
    ) -> None:
        self._asking = asking
        self._potential = potential
        self._dependents = dependents
        self._rows = rows
        self._settings = settings
        self._is_monotone = reaches.is_monotone and dependents is None
        self._reprieve = Reprieve(
            asking, dependents, is_monotone=self._is_monotone, partners_first=settings.keeps_partners
        )
        self._results = WideResults(asking, rows)
        self._bounds = self._at_least()
        # Or else it may cost less, of two sets, to take the one that has the other in it.
        self._prunes = asking.grows or self._is_monotone
        # Where no cheaper set can be.
        self._proven: Bools = np.zeros(len(rows), dtype=np.bool_)
        self._charged = 0
        self._left_out = 0
        self._is_complete = False

    @property
    def search(self) -> Search:
        """How it went."""
        return Search(self._asking.steps, self._settings.most_steps, self._left_out, self._is_complete)

    def table(self) -> TrialTable:
        """What it came to."""
        return self._results.table()

    def run(self, *, detailed: bool) -> None:
        """Look for the victims."""
        detailed = detailed or not self._prunes
        numbers = self._potential.numbers(self._rows)
        self._results.refused[numbers == 0] = WITHOUT_VICTIMS
        self._proven |= numbers == 0
        order = self._within(numbers)
        best = None
        for block in self._blocks(order):
            if best is not None and not detailed and not self._may_beat(block, best).any():
                break
            best = self._try(np.sort(block), best, detailed=detailed)
        self._improve(np.sort(order), numbers, best)

    def _at_least(self) -> Int64s:
        """``[bounding, rows]``: what the victims on each row cost at least, for those who have to go in any case."""
        asking = self._asking
        nobody = MemberSets(np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int64), np.ones(1, dtype=np.bool_))
        found = np.repeat(asking.least(nobody), len(self._rows), axis=1)
        for starts, members, of_row in self._potential.forced(self._rows):
            sets = MemberSets(starts, members, np.ones(len(starts) - 1, dtype=np.bool_))
            np.maximum(found, asking.least(sets)[:, of_row], out=found)
        return found

    def _within(self, numbers: Int64s) -> Int64s:
        """The positions to look at, as many as the steps are enough for: those first that cost the least at least."""
        positions = np.flatnonzero(numbers)
        name_hash = self._asking.cluster.nodes.name_hash[self._rows[positions]]
        order = positions[np.lexsort((name_hash, *self._bounds[::-1, positions]))]
        charges = np.cumsum(numbers[order] + 2)
        enough = max(1, int(np.searchsorted(charges, self._settings.most_steps, side="right")))
        self._left_out = max(0, len(order) - enough)
        order = order[:enough]
        self._charged = int(charges[len(order) - 1]) if len(order) else 0
        return order

    def _blocks(self, order: Int64s) -> Iterator[Int64s]:
        """The positions in blocks of some hundred, so that the first ones limit what others may cost.

        Later on rows that nothing tells apart are in one.
        """
        bounds = self._bounds[:, order]
        ends = np.append(np.flatnonzero((bounds[:, 1:] != bounds[:, :-1]).any(axis=0)) + 1, len(order))
        first, end = 0, min(_FEWEST_ROWS, len(order))
        while first < len(order):
            yield order[first:end]
            first = end
            end = int(ends[np.searchsorted(ends, min(first + _FEWEST_ROWS, len(order)))])

    def _may_beat(self, positions: Int64s, best: Int64s) -> Bools:
        """Where something may be found that costs as little as the best, or less."""
        return at_most(self._bounds[:, positions], best[: len(self._bounds)])

    def _try(self, block: Int64s, best: Int64s | None, *, detailed: bool) -> Int64s | None:
        """Try the rows at some positions, ascending; the cost of the best so far."""
        pairs = self._potential.pairs(self._rows[block])
        needed = self._closed(sets_of(pairs.owners[pairs.forced], pairs.members[pairs.forced], len(block)))
        refused = self._asking.refused(pairs.rows, needed)
        enough = np.flatnonzero(refused == 0)
        self._results.put(block[enough], needed.only(enough))
        self._proven[block[enough]] = True
        best = self._results.best()
        rest = np.flatnonzero(refused != 0)
        if best is not None and not detailed:
            # What has to go there as well costs more than what has to go in any case.
            rest = rest[self._may_beat(block[rest], best)]
        if len(rest):
            self._spare(block[rest], pairs.only(rest), None if detailed else best)
        return self._results.best()

    def _spare(self, positions: Int64s, pairs: Pairs, limit: Int64s | None) -> None:
        """Let all go who may, and spare those who need not, where that costs no more than ``limit``."""
        gone = np.ones(len(pairs.owners), dtype=np.bool_)
        undecided = np.arange(len(positions))
        for start in self._starts(pairs):
            sets = self._closed(sets_of(pairs.owners[start], pairs.members[start], len(positions)).only(undecided))
            refused = self._asking.refused(pairs.rows[undecided], sets)
            self._results.refused[positions[undecided]] = refused
            fits = np.zeros(len(positions), dtype=np.bool_)
            fits[undecided[refused == 0]] = True
            gone = np.where(fits[pairs.owners], start, gone)
            undecided = undecided[refused != 0]
            if not len(undecided):
                break
        if self._is_monotone:
            self._proven[positions[undecided]] = True
        fitting = np.setdiff1d(np.arange(len(positions)), undecided)
        if len(fitting):
            at = np.isin(pairs.owners, fitting)
            some = pairs.only(fitting)
            left = self._reprieve.left(some, gone[at], limit)
            found = self._closed(sets_of(some.owners[left], some.members[left], len(fitting)))
            self._results.put(positions[fitting], found)

    def _starts(self, pairs: Pairs) -> Iterator[Bools]:
        """Whom to let go at first, one choice after the other until the pod fits: ``[pairs]``.

        Where a pod less may keep the preemptor off, that need not be all: first those whom it requires to be near stay,
        then but one of them; then all go; then all whom others depend on stay; and then all on other nodes.
        """
        everybody = np.ones(len(pairs.owners), dtype=np.bool_)
        if pairs.partner.any():
            yield ~pairs.partner
            place = _places(pairs)
            for kept in range(min(_MOST_PARTNERS, int(place[pairs.partner].max()) + 1)):
                yield ~(pairs.partner & (place == kept))
        yield everybody
        if self._dependents is not None:
            yield ~self._dependents.are_of(pairs.members) | pairs.forced
        if not self._is_monotone:
            yield pairs.own | pairs.forced

    def _closed(self, sets: MemberSets) -> MemberSets:
        return sets if self._dependents is None else self._dependents.closed(sets)

    def _improve(self, positions: Int64s, numbers: Int64s, best: Int64s | None) -> None:
        """Try all sets where a cheaper one may be, if the steps are enough for all of these."""
        left = positions[~self._proven[positions]]
        if best is not None and self._prunes:
            left = left[self._may_beat(left, best)]
        left = self._unsettled(left, numbers)
        if not self._are_enough(left):
            return
        for position in left.tolist():
            pairs = self._potential.pairs(self._rows[position : position + 1])
            limit = self._results.best() if self._prunes else None
            better = best_set(self._asking, self._dependents, pairs, limit)
            if better is not None:
                sets, cost = better
                if self._is_better(position, sets, cost):
                    self._results.put(np.array([position]), sets)
        self._is_complete = not self._left_out

    def _unsettled(self, positions: Int64s, numbers: Int64s) -> Int64s:
        """Those of the positions where something better may be found; ``numbers`` of pods may be victims, or fewer."""
        taken = self._results.numbers(positions)
        asked = positions[(taken == 1) | (taken == numbers[positions])]
        known = np.zeros(len(self._rows), dtype=np.bool_)
        for first in range(0, len(asked), _FEW_ROWS):
            some = asked[first : first + _FEW_ROWS]
            pairs = self._potential.pairs(self._rows[some])
            known[some] = settled(self._asking, pairs, some, self._results, is_monotone=self._is_monotone)
        unsettled: Int64s = positions[~known[positions]]
        return unsettled

    def _is_better(self, position: int, sets: MemberSets, cost: Int64s) -> bool:
        """Whether a set is better than what was found for its row: it costs something else, or has fewer victims."""
        if self._results.refused[position] or not np.array_equal(cost, self._results.costs[:, position]):
            return True
        return len(sets.members) < int(self._results.numbers(np.array([position]))[0])

    def _are_enough(self, positions: Int64s) -> bool:
        """Whether the steps that are left are enough to try all sets of those who may stay or go, on all these rows."""
        rest = self._settings.most_steps - self._charged
        for first in range(0, len(positions), _FEW_ROWS):
            pairs = self._potential.pairs(self._rows[positions[first : first + _FEW_ROWS]])
            members = np.bincount(pairs.owners, minlength=len(pairs.rows))
            free = np.bincount(pairs.owners[~pairs.forced], minlength=len(pairs.rows))
            if free.max(initial=0) > MOST_FREE or (members << free).max(initial=0) > _MOST_CELLS:
                return False
            rest -= int((1 << free).sum())
            if rest < 0:
                return False
        return True


def _places(pairs: Pairs) -> Int64s:
    """``[pairs]``: of those whom the pod requires to be near, how many on the same row come first."""
    before = np.concatenate([[0], np.cumsum(pairs.partner)])
    firsts = np.searchsorted(pairs.owners, pairs.owners)
    places: Int64s = before[:-1] - before[firsts]
    return places
