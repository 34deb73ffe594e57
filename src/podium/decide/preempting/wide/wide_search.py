"""Trials of preemption with victims that may be on other nodes, or depend on one another: the cheapest victims.

Each row has victims that are forced: all pods that an anti-affinity keeps apart from the preemptor, for one. If they
suffice, no cheaper set exists. Otherwise all potential victims are removed and given back one by one. Rows are tried in
the order of lower bounds of their costs, as long as a cheaper set may exist. Finally, if few enough pods may stay or
go, all sets of them are tried, so that the result is optimal.

Source: pod-preemption.md, "Supporting Cross Node Preemption?" and "Supporting Inter-Pod Affinity on lower priority
Pods?", which leave both out because of their cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from podium.cluster.arrays import Bools, Int64s, Lists, runs
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord
from podium.decide.preempting import reprieve
from podium.decide.preempting.criteria import SetCosts
from podium.decide.preempting.eligibility import VictimFilter, VictimPool, WholeGroups, victim_pool
from podium.decide.preempting.preemption_plan import SearchEffort
from podium.decide.preempting.trials import Trials
from podium.decide.preempting.wide.dependents import Dependents, have_dependents
from podium.decide.preempting.wide.minimal_victims import VictimMinimizer, best_sets, cost_least_alone
from podium.decide.preempting.wide.victim_domains import MemberSets, SetEvaluator, VictimDomains, may_have_to_leave
from podium.framework.handle import Reaches

_FEWEST_ROWS = 256
_FEW_ROWS = 512
# The most entries in all sets of the free pods of one row, and of the rows examined together.
_MOST_CELLS = 1 << 21
_CELLS_TOGETHER = 1 << 17
# Sets of more free pods on a row are not tried.
_MOST_FREE = 14


@dataclass(frozen=True, slots=True)
class WideSettings:
    """The scope of the search for victims.

    ``across``: on other nodes than the pod's too. ``keeps_partners``: pods that the preemptor requires nearby are no
    victims while there is another choice. ``with_dependents``: pods that depend on victims are victims too.
    ``whole_groups``: the pods of groups that say so are victims together or not at all. ``most_steps`` limits the
    search.
    """

    across: bool = False
    keeps_partners: bool = False
    with_dependents: bool = False
    whole_groups: bool = False
    most_steps: int = 100_000

    def __bool__(self) -> bool:
        return self.across or self.keeps_partners or self.with_dependents or self.whole_groups


class WideSearch:
    """One search, for one pod. Positions are those in ``rows``."""

    def __init__(
        self,
        evaluator: SetEvaluator,
        domains: VictimDomains,
        dependents: Dependents | None,
        reaches: Reaches,
        rows: Int64s,
        settings: WideSettings,
    ) -> None:
        self._evaluator = evaluator
        self._domains = domains
        self._dependents = dependents
        self._rows = rows
        self._settings = settings
        self._is_monotone = reaches.is_monotone and dependents is None
        self._minimizer = VictimMinimizer(evaluator, dependents, self._is_monotone, settings.keeps_partners)
        self._results = WideResults(evaluator, rows)
        # ``[bounding, rows]``: lower bounds of the costs on each row, from forced victims.
        empty = MemberSets.at(np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int64))
        self._bounds = np.repeat(evaluator.least(empty), len(rows), axis=1)
        for sets, of_row in domains.forced_sets(rows):
            np.maximum(self._bounds, evaluator.least(sets)[:, of_row], out=self._bounds)
        # Otherwise the larger of two sets, one of which contains the other, may cost less.
        self._prunes = evaluator.grows or self._is_monotone
        # The rows for which no cheaper set exists.
        self._proven: Bools = np.zeros(len(rows), dtype=np.bool_)
        # The number of potential victims on the rows that were tried, and of those that are not forced.
        self._members: Int64s = np.zeros(len(rows), dtype=np.int64)
        self._free: Int64s = np.zeros(len(rows), dtype=np.int64)
        self._charged = 0
        self._left_out = 0
        self._is_complete = False

    @property
    def effort(self) -> SearchEffort:
        """The effort so far."""
        return SearchEffort(self._evaluator.steps, self._settings.most_steps, self._left_out, self._is_complete)

    def run(self, *, detailed: bool) -> reprieve.TrialTable:
        tries_all = detailed or not self._prunes
        numbers = self._domains.numbers(self._rows)
        self._results.refused[numbers == 0] = reprieve.WITHOUT_VICTIMS
        self._proven |= numbers == 0
        order = self._within_steps(numbers)
        best = None
        for block in self._blocks(order):
            if best is not None and not tries_all and not self._may_beat(block, best).any():
                break
            best = self._try(np.sort(block), tries_all=tries_all)
        self._improve(order, best, detailed=detailed)
        return self._results.table()

    def _within_steps(self, numbers: Int64s) -> Int64s:
        """Return the positions to try, as many as the steps suffice for, those with the lowest bounds first."""
        positions = np.flatnonzero(numbers)
        name_hash = self._evaluator.cluster.nodes.name_hash[self._rows[positions]]
        order = positions[np.lexsort((name_hash, *self._bounds[::-1, positions]))]
        charges = np.cumsum(numbers[order] + 2)
        enough = max(1, int(np.searchsorted(charges, self._settings.most_steps, side="right")))
        self._left_out = max(0, len(order) - enough)
        order = order[:enough]
        self._charged = int(charges[len(order) - 1]) if len(order) else 0
        return order

    def _blocks(self, order: Int64s) -> Iterator[Int64s]:
        """Yield the positions in blocks of some hundred, so that the first ones limit the costs of others.

        Later blocks contain all rows with the same bounds.
        """
        ends = runs(*self._bounds[:, order], order * 0)[1:]
        first, end = 0, min(_FEWEST_ROWS, len(order))
        while first < len(order):
            yield order[first:end]
            first = end
            end = int(ends[np.searchsorted(ends, min(first + _FEWEST_ROWS, len(order)))])

    def _may_beat(self, positions: Int64s, best: Int64s) -> Bools:
        """Return where victims may exist that cost at most as much as the best."""
        return reprieve.at_most(self._bounds[:, positions], best[: len(self._bounds)])

    def _try(self, block: Int64s, *, tries_all: bool) -> Int64s | None:
        """Try the rows at some positions, ascending; return the best cost so far."""
        pairs = self._domains.pairs(self._rows[block])
        without_forced = self._minimizer.forced_victims(pairs)
        enough = np.flatnonzero(without_forced.refused == 0)
        self._results.put(block[enough], without_forced.needed.only(enough))
        self._proven[block[enough]] = True
        best = self._results.best()
        rest = np.flatnonzero(without_forced.refused)
        if best is not None and not tries_all:
            # Rows that need more than their forced victims cost more than these.
            rest = rest[self._may_beat(block[rest], best)]
        if len(rest):
            positions, without_forced = block[rest], without_forced.only(rest)
            pairs = without_forced.pairs
            self._members[positions], self._free[positions] = pairs.lengths, pairs.sums(~pairs.forced)
            refused, sets, is_settled = self._minimizer.minimal(without_forced, None if tries_all else best)
            self._results.refused[positions] = refused
            self._results.put(positions[refused == 0], sets)
            self._proven[positions[is_settled]] = True
        return self._results.best()

    def _improve(self, order: Int64s, best: Int64s | None, *, detailed: bool) -> None:
        """Try all sets where a cheaper one may exist, if the steps suffice for all of these."""
        left = order[~self._proven[order]]
        if best is not None and self._prunes:
            left = left[self._may_beat(left, best)]
        left = left[~self._settled(left)]
        free = self._free[left]
        if free.max(initial=0) > _MOST_FREE or (self._members[left] << free).max(initial=0) > _MOST_CELLS:
            return
        if int((1 << free).sum()) > self._settings.most_steps - self._charged:
            return
        results = self._results
        for block in self._joint_blocks(left):
            pairs = self._domains.pairs(self._rows[block])
            limit = results.best() if self._prunes else None
            found, sets, costs = best_sets(self._evaluator, self._dependents, pairs, limit, all_rows=detailed)
            rows = block[found]
            is_better = (results.refused[rows] != 0) | (costs != results.costs[:, rows]).any(axis=0)
            better = np.flatnonzero(is_better | (sets.lengths < results.sizes[rows]))
            results.put(rows[better], sets.only(better))
        self._is_complete = not self._left_out

    def _settled(self, positions: Int64s) -> Bools:
        """Return ``[positions]``: where the results cannot be improved."""
        taken = self._results.sizes[positions]
        settled = np.zeros(len(positions), dtype=np.bool_)
        if self._is_monotone:
            # No potential victim could be spared: only all of them are enough.
            settled |= (taken > 0) & (taken == self._members[positions])
        if self._evaluator.grows:
            alone = np.flatnonzero(taken == 1)
            for first in range(0, len(alone), _FEW_ROWS):
                some = alone[first : first + _FEW_ROWS]
                pairs = self._domains.pairs(self._rows[positions[some]])
                settled[some] |= cost_least_alone(self._evaluator, pairs, self._results.costs[:, positions[some]])
        return settled

    def _joint_blocks(self, positions: Int64s) -> Iterator[Int64s]:
        """Yield the positions in blocks whose sets are all examined together, in the order of their bounds."""
        cells = np.cumsum(self._members[positions] << self._free[positions]) // _CELLS_TOGETHER
        for first, end in pairwise(runs(cells).tolist()):
            yield np.sort(positions[first:end])


class WideResults:
    """The results of the trials on some rows; ``sizes`` are the numbers of victims, 0 without a candidate."""

    def __init__(self, evaluator: SetEvaluator, rows: Int64s) -> None:
        self._evaluator = evaluator
        self._rows = rows
        self._victims_on: dict[int, Sequence[int]] = {}
        self._best: Int64s | None = None
        self.refused: Int64s = np.full(len(rows), reprieve.NOT_TRIED, dtype=np.int64)
        self.sizes, self._violations = np.zeros((2, len(rows)), dtype=np.int64)
        self.costs: Int64s = np.zeros((len(evaluator.criteria), len(rows)), dtype=np.int64)

    def put(self, positions: Int64s, sets: MemberSets) -> None:
        """Put in the victims on rows where the pod fits without them."""
        if not len(positions):
            return
        evaluator, rows = self._evaluator, self._rows[positions]
        self.costs[:, positions] = evaluator.costs(rows, sets)
        violations = self._violations[positions] = evaluator.violations(sets)
        refused = np.where(sets.lengths > 0, 0, reprieve.NO_VICTIM_NEEDED)
        if evaluator.set_costs.requires_budgets:
            refused[violations > 0] = reprieve.BEYOND_BUDGETS
        self.refused[positions], self.sizes[positions] = refused, np.where(refused == 0, sets.lengths, 0)
        self._victims_on.update(reprieve.victims_by_row(rows, Lists(sets.starts, evaluator.pool.slots[sets.entries])))
        self._best = None

    def best(self) -> Int64s | None:
        """Return the lowest cost; None without a candidate."""
        if self._best is None:
            left = np.flatnonzero(self.refused == 0)
            for values in self.costs if len(left) else ():
                left = left[values[left] == values[left].min()]
            self._best = self.costs[:, left[0]].copy() if len(left) else None
        return self._best

    def table(self) -> reprieve.TrialTable:
        evaluator = self._evaluator
        # No candidate violates budgets that are required.
        first = int(evaluator.set_costs.requires_budgets)
        return reprieve.TrialTable(
            self._rows,
            self.refused,
            self.costs[first:],
            self._victims_on,
            evaluator.decoders,
            criteria_names=evaluator.criteria[first:],
            violations=self._violations,
            is_stated=evaluator.set_costs.stated is not None,
        )


@dataclass(frozen=True, slots=True)
class WideTrials:
    """Tries preemption by its settings. Nothing is cached: each trial depends on the pods of many nodes."""

    cluster: Cluster
    trials: Trials
    settings: WideSettings

    def concern(self, preemptor: reprieve.Preemptor) -> bool:
        """Return whether the victims for a pod may differ from those found on each node alone."""
        settings, handle, state, pod = self.settings, preemptor.handle, preemptor.state, preemptor.pod
        if not handle.is_row_local(state):
            reaches = handle.reaches(state, pod)
            if settings.across and (reaches.found or not reaches.is_known):
                return True
            if settings.keeps_partners and any(reach.effect == "Stay" for reach in reaches.found):
                return True
        if settings.with_dependents and have_dependents(self.cluster):
            return True
        return settings.whole_groups and bool(WholeGroups(self.cluster))

    def awaits_victims(self, preemptor: reprieve.Preemptor, *, evicts: bool = False) -> bool:
        """Return whether preempted pods on other nodes still terminate, and keep a nominated pod off its node.

        With ``evicts`` such pods are not marked as victims: all that terminate count.
        """
        cluster, table = self.cluster, self.cluster.pods
        handle, state, pod = preemptor.handle, preemptor.state, preemptor.pod
        row = cluster.nodes.row_of.get(pod.nominated_node_name)
        if row is None or not self.settings.across or handle.is_row_local(state):
            return False
        count = table.count
        leaving = table.terminating[:count] & (table.row[:count] != NO_ROW) & (table.priority[:count] < pod.priority)
        records = map(table.record, np.flatnonzero(leaving).tolist())
        victims = [victim for victim in records if victim.preempted or evicts]
        if not victims:
            return False
        own = set(cluster.nominations.victims_of(pod.uid))
        reaches = handle.reaches(state, pod)
        return any(victim.uid in own for victim in victims) or any(
            may_have_to_leave(cluster, reach, row, victim) for victim in victims for reach in reaches.found
        )

    def reasons(self, preemptor: reprieve.Preemptor, row: int, victims: Sequence[PodRecord]) -> dict[str, str]:
        """Return, by uid, the reasons other than capacity for which victims must leave so that the pod fits in a row.

        A dependence on another victim is reported if no filter that looks beyond the row needs the victim gone.
        """
        cluster, pod, found = self.cluster, preemptor.pod, dict[str, str]()
        reaches = preemptor.handle.reaches(preemptor.state, pod)
        for victim in victims:
            why = [reach.reason for reach in reaches.found if may_have_to_leave(cluster, reach, row, victim)]
            if why:
                found[victim.uid] = ", ".join(dict.fromkeys(why))
        if not (self.settings.with_dependents or self.settings.whole_groups):
            return found
        pool = victim_pool(cluster, self.trials.ranking, pod, None)
        dependents, places = self._dependents(pool, pod), pool.index_of[[victim.slot for victim in victims]].tolist()
        for victim, place in zip(victims, places, strict=True):
            reason = None if victim.uid in found else dependents.reason(place, places)
            if reason is not None and reason.keys:
                found[victim.uid] = f"requires to be near {cluster.pods.record(pool.slots.item(reason.of)).key}"
            elif reason is not None and victim.row != row:
                found[victim.uid] = f"goes with its group, {victim.pod_class.pod_group}"
        return found

    def on(
        self,
        preemptor: reprieve.Preemptor,
        rows: Int64s,
        may_disrupt: VictimFilter | None,
        costs: SetCosts,
        *,
        detailed: bool,
    ) -> tuple[reprieve.TrialTable, SearchEffort]:
        """Return the trials on ``rows``, ascending. Unless ``detailed``, rows that cannot be the best are left out."""
        pool = victim_pool(self.cluster, self.trials.ranking, preemptor.pod, may_disrupt)
        reaches = preemptor.handle.reaches(preemptor.state, preemptor.pod)
        kept = [reach for reach in reaches.found if reach.effect == "Stay"] if self.settings.keeps_partners else None
        evaluator = SetEvaluator(preemptor, pool, costs, kept)
        domains = VictimDomains(self.cluster, pool, reaches, across=self.settings.across)
        dependents = self._dependents(pool, preemptor.pod) or None
        search = WideSearch(evaluator, domains, dependents, reaches, rows, self.settings)
        return search.run(detailed=detailed), search.effort

    def _dependents(self, pool: VictimPool, pod: PodRecord) -> Dependents:
        """Return the pods that become victims with others if ``pod`` preempts."""
        wholes = WholeGroups(self.cluster) if self.settings.whole_groups else None
        return Dependents(
            self.cluster, pool, by_affinity=self.settings.with_dependents, wholes=wholes, priority=pod.priority
        )
