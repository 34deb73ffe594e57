"""What preempting on each node would come to, tried for many rows at once and kept where nothing changed.

Source: pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.ranking import EqualPriorityOrder, Ranking
from podium.decide.preempting.costs.facts import Facts
from podium.decide.preempting.costs.upstream import cost_of, costs_of_lists
from podium.decide.preempting.costs.victim_cost import VictimCost
from podium.decide.preempting.costs.victim_sets import VictimSets
from podium.decide.preempting.kept_trials import KeptTrials, Standing
from podium.decide.preempting.trial_table import (
    CRITERIA,
    NOBODY_IN_THE_WAY,
    WITHOUT_VICTIMS,
    RowTrial,
    TrialTable,
    VictimLists,
)
from podium.decide.preempting.victims import PotentialVictims, Victims, choose_victims, choose_victims_on, with_budgets
from podium.framework.cycle_state import CycleState
from podium.framework.handle import Handle
from podium.framework.kept.class_cache import KeptByClass
from podium.framework.kept.row_filters import RowFilters
from podium.framework.status import Status
from podium.framework.verdicts import Decoders, Outcome

_VICTIMS = CRITERIA.index("fewest victims")
_KEPT_CLASSES = 64
# Up to how many pods on some rows these are tried one by one. For each pod that is given back the others are added up.
_FEW_PODS = 128

MOST_EQUALS = 6
"""So many candidates that cost the same are named where nobody asked for details."""

# Which of the lower-priority pods in some slots the preemptor may disrupt: ``[slots]``.
VictimFilter = Callable[[PodRecord, Int64s], Bools]


class BestTrial(msgspec.Struct, frozen=True):
    """The trial that the criteria choose, and the pod's lot among equals. ``row`` is None where there is no candidate.

    ``victims`` are their slots, most important first; ``tally`` says why the other rows are no candidates, and is
    filled in only where all of them are none. ``candidates`` says how many there are, and ``equals`` are the first rows
    of those that the criteria do not tell from the chosen one, with that.
    """

    row: int | None
    victims: Sequence[int] = ()
    budget_violations: int = 0
    tally: tuple[tuple[Status, int], ...] = ()
    candidates: int = 0
    equals: tuple[int, ...] = ()


class Trials:
    """Tries preemption, and keeps the outcome for rows that did not change.

    A trial is kept where it depends on its own row alone: the filters that speak about the pod do, the budgets of the
    pods there are as they were, and the pod has no nomination of its own there. It is kept for the 64 classes that were
    used last.
    """

    def __init__(self, cluster: Cluster, order: EqualPriorityOrder, *, spare_mirrors: bool = False) -> None:
        self._cluster = cluster
        self.ranking = Ranking(cluster, order, spare_mirrors=spare_mirrors)
        self._kept: KeptByClass[KeptTrials] = KeptByClass(_KEPT_CLASSES)

    def on(
        self,
        runner: Handle,
        state: CycleState,
        pod: PodRecord,
        rows: Int64s,
        may_disrupt: VictimFilter | None,
        cost: VictimCost | None = None,
    ) -> TrialTable:
        """The trials on ``rows``, ascending. With a ``cost`` the dearest pods are spared first."""
        if may_disrupt is not None or cost is not None or not runner.is_row_local(state):
            return self._try(runner, state, pod, rows, may_disrupt, cost=cost)
        kept = self._refreshed(runner, state, pod)
        refused, criteria = kept.refused[rows], kept.criteria[:, rows]
        table = TrialTable(rows, refused, criteria, kept.lists, kept.decoders)
        own = self._cluster.nodes.row_of.get(pod.nominated_node_name, -1)
        at = int(np.searchsorted(rows, own))
        if own >= 0 and at < len(rows) and rows[at] == own:
            again = self._try(runner, state, pod, rows[at : at + 1], None)
            refused[at], criteria[:, at] = again.refused[0], again.criteria[:, 0]
            table.own_row, table.own_list = own, again.lists
            table.decoders = {**kept.decoders, **again.decoders}
        return table

    def best(self, runner: Handle, state: CycleState, pod: PodRecord, outcome: Outcome, lot: int) -> BestTrial | None:
        """What `on` comes to for the rows whose refusal in ``outcome`` might be lifted, without looking at all of them.

        None where they have to be looked at: filters look beyond their row, or ``outcome`` is not what the runner keeps
        of the class.
        """
        nodes = self._cluster.nodes
        if outcome.position != nodes.changes.position:
            return None
        kept = self._refreshed(runner, state, pod)
        standing = self._standing(kept, outcome)
        own = nodes.row_of.get(pod.nominated_node_name, -1)
        for row in sorted(standing.missed):
            if row != own:
                self._place(standing, row, standing.missed[row] or kept.trial(row), outcome)
        standing.missed = {}
        decoders, trial = kept.decoders, None
        if own >= 0:
            # What is tried here is right for this pod alone.
            standing.missed[own] = None
            trial, decoders = self._try_own(runner, state, pod, own, decoders)
            self._place(standing, own, trial, outcome)
        drawn = standing.draw(lot, MOST_EQUALS)
        if drawn is None:
            return BestTrial(None, tally=tuple(standing.tally(decoders)))
        best, equals = drawn
        if trial is not None and best == own:
            victims: Sequence[int] = trial.victims
            violations = trial.key[0]
        else:
            victims, violations = kept.victims(best)
        return BestTrial(best, victims, violations, candidates=standing.candidates, equals=equals)

    def _standing(self, kept: KeptTrials, outcome: Outcome) -> Standing:
        """The trials that count, as they were when this was asked for last."""
        found = kept.standing
        if found is None or len(found.missed) > len(kept.refused) // 4:
            found = kept.standing = Standing(kept, outcome.resolvable(), self._cluster.nodes.name_hash)
        return found

    def _place(self, standing: Standing, row: int, trial: RowTrial, outcome: Outcome) -> None:
        """Let the trial on a row count if it may lift the refusal there."""
        if outcome.is_resolvable(row):
            standing.put(row, trial.refused, trial.key, self._cluster.nodes.name_hash.item(row))
        else:
            standing.leave(row)

    def _try_own(
        self, runner: Handle, state: CycleState, pod: PodRecord, row: int, decoders: Decoders
    ) -> tuple[RowTrial, Decoders]:
        """The trial on the row that a pod is nominated to, without that nomination; and what entries stand for then."""
        filters = runner.row_filters(state, pod)
        if filters is not None:
            filters.explain(pod, decoders)
            return self._try_row(filters, pod, row, pod.uid), decoders
        table = self._try(runner, state, pod, np.array([row]), None)
        return table.trial(0), {**decoders, **table.decoders}

    def _refreshed(self, runner: Handle, state: CycleState, pod: PodRecord) -> KeptTrials:
        """The kept trials of the pod's class and priority, brought up to date; its own nomination counts in them."""
        nodes, budgets = self._cluster.nodes, self._cluster.budgets
        kept = self._kept.get(pod.pod_class, (pod.priority, state.skip_filter), KeptTrials)
        if kept.position == nodes.changes.position and kept.budgets == budgets.position:
            return kept
        rows = self._changed(kept) if kept.position >= 0 else None
        if rows is None:
            kept.replace(self._try(runner, state, pod, nodes.all_rows(), None, own_uid=""))
        elif rows:
            pod_count = nodes.entries.pod_count
            one_by_one = runner.row_filters(state, pod, len(rows))
            if one_by_one is None or sum([pod_count[row] for row in rows]) > _FEW_PODS:
                some = np.array(rows, dtype=np.int64)
                kept.update(self._try(runner, state, pod, some, None, own_uid=""), nodes.count)
            else:
                one_by_one.explain(pod, kept.decoders)
                for row in rows:
                    kept.update_row(row, self._try_row(one_by_one, pod, row, ""), nodes.count)
        # Only now: a plugin that failed must be asked again.
        kept.position, kept.budgets = nodes.changes.position, budgets.position
        return kept

    def _changed(self, kept: KeptTrials) -> list[int] | None:
        """The rows to try again, ascending: those that changed, and those of pods whose budgets did; None for all."""
        rows = self._cluster.nodes.changes.entries_since(kept.position)
        budgets = self._cluster.budgets.since(kept.budgets)
        if rows is None or budgets is None:
            return None
        return sorted({*rows, *self._cluster.rows_of(budgets).tolist()} if budgets else set(rows))

    def _try(
        self,
        runner: Handle,
        state: CycleState,
        pod: PodRecord,
        rows: Int64s,
        may_disrupt: VictimFilter | None,
        own_uid: str | None = None,
        cost: VictimCost | None = None,
    ) -> TrialTable:
        """Try the rows; ``own_uid`` is whose nomination does not count (None: the pod's own)."""
        potential = self._potential_victims(pod, rows, may_disrupt)
        if not len(potential.rows):
            return self.tabulated(rows, None)
        order = None if cost is None else cost.reprieve_order(alone(runner, potential), potential.owners)
        own = pod.uid if own_uid is None else own_uid
        victims = choose_victims(runner, state, pod, potential, own, order=order)
        return self.tabulated(rows, victims)

    def _try_row(self, filters: RowFilters, pod: PodRecord, row: int, own_uid: str) -> RowTrial:
        """The same for one row, without arrays."""
        records = [other for other in self.ranking.on(row) if other.priority < pod.priority]
        if not records:
            return RowTrial(WITHOUT_VICTIMS)
        violating = [False] * len(records)
        if len(self._cluster.budgets):
            starts, slots = np.array([0, len(records)]), np.array([other.slot for other in records], dtype=np.int64)
            violating = with_budgets(self._cluster, np.array([row]), starts, slots).violating.tolist()
        refused, chosen = choose_victims_on(filters, pod, row, records, violating, own_uid)
        if refused:
            return RowTrial(refused)
        return _row_trial(records, violating, chosen) if chosen else RowTrial(NOBODY_IN_THE_WAY)

    def _potential_victims(self, pod: PodRecord, rows: Int64s, may_disrupt: VictimFilter | None) -> PotentialVictims:
        """The lower-priority pods on ``rows``; rows that have none are left out."""
        ranking = self.ranking
        ranking.refresh()
        places = ranking.priorities[rows] < pod.priority
        slots = ranking.slots[rows][places].astype(np.int64)
        owners = np.repeat(np.arange(len(rows)), places.sum(axis=1))
        if may_disrupt is not None and len(slots):
            allowed = may_disrupt(pod, slots)
            slots, owners = slots[allowed], owners[allowed]
        some, starts = grouped(owners, len(rows))
        return with_budgets(self._cluster, rows[some], starts, slots)

    def tabulated(self, rows: Int64s, victims: Victims | None) -> TrialTable:
        """The trials on ``rows``, ascending. Those that ``victims`` leaves out (None: all) had no potential victims."""
        refused = np.full(len(rows), WITHOUT_VICTIMS, dtype=np.int64)
        criteria = np.zeros((len(CRITERIA), len(rows)), dtype=np.int64)
        if victims is None:
            return TrialTable(rows, refused, criteria, VictimLists.none(), {})
        refused[np.searchsorted(rows, victims.potential.rows)] = victims.outcome.refused
        lists = self._write(rows, victims, criteria)
        refused[(refused == 0) & (criteria[_VICTIMS] == 0)] = NOBODY_IN_THE_WAY
        return TrialTable(rows, refused, criteria, lists, dict(victims.outcome.decoders))

    def _write(self, rows: Int64s, victims: Victims, criteria: Int64s) -> VictimLists:
        """Work out the criteria and the victims of every row where the preemptor fits."""
        potential = victims.potential
        index = np.flatnonzero(victims.chosen)
        owners = potential.owners[index]
        if not len(owners):
            return VictimLists.none()
        firsts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
        chosen = potential.slots[index]
        starts = np.concatenate([firsts, [len(index)]])
        found = potential.rows[owners[firsts]]
        violating = potential.violating[index]
        criteria[:, np.searchsorted(rows, found)] = costs_of_lists(self._cluster, starts, chosen, violating)
        return VictimLists(found, starts, chosen)


def _row_trial(records: Sequence[PodRecord], violating: Sequence[bool], chosen: Sequence[int]) -> RowTrial:
    """The trial on a row, by the places of its victims in ``records``, ascending."""
    victims = [records[place] for place in chosen]
    key = cost_of(victims, sum(violating[place] for place in chosen))
    return RowTrial(0, key, tuple(victim.slot for victim in victims))


def alone(runner: Handle, potential: PotentialVictims) -> VictimSets:
    """Each potential victim as a set of its own."""
    starts = np.arange(len(potential.slots) + 1)
    return VictimSets(Facts(runner), starts, potential.slots, potential.violating.astype(np.int64))


def grouped(positions: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """The positions below ``count`` that occur, and where each begins in ``positions``, ascending; and the end."""
    numbers = np.bincount(positions, minlength=count)
    some = np.flatnonzero(numbers)
    return some, np.concatenate([[0], np.cumsum(numbers[some])])
