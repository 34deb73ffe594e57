"""Trials of preemption on many rows at once, cached for rows on which nothing changed, and the order of candidates.

Source: pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Container, Sequence
from itertools import pairwise, repeat
from operator import lshift, or_

import numpy as np

from podium.cluster.arrays import Int64s, Lists, UInt64s, grown, runs
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord
from podium.cluster.ranking import EqualPriorityOrder, PreemptionRanking
from podium.cluster.view import View
from podium.decide.preempting import preemption_plan
from podium.decide.preempting.criteria import UPSTREAM, VictimCost, VictimSets, cost_of
from podium.decide.preempting.eligibility import VictimFilter, beyond_budgets
from podium.decide.preempting.reprieve import (
    NO_VICTIM_NEEDED,
    WITHOUT_VICTIMS,
    PotentialVictims,
    Preemptor,
    RowTrial,
    TrialTable,
    choose_victims,
    choose_victims_on,
    tally,
)
from podium.framework.cache.class_cache import CacheByClass, as_many_as
from podium.framework.cache.row_filters import RowFilters
from podium.framework.verdicts import Decoders, Outcome

_CACHED_CLASSES = 64
# A cached trial takes some 300 bytes.
_CACHED_TRIALS = 1 << 18
# Rows are tried one by one up to this number of pods: each pod that is given back is summed up with all others.
_FEW_PODS = 128

MOST_EQUALS = 6
"""The maximum number of equal candidates that are named if no details were requested."""


class Trials:
    """Tries preemption, and caches the result for rows that did not change.

    A trial is cached if it depends on its own row alone: the filters that apply to the pod do, or the others answer
    alike without its victims; the budgets of the pods there are unchanged, and the pod has no nomination of its own
    there. The cache holds the classes used last.
    """

    def __init__(self, cluster: Cluster, order: EqualPriorityOrder, *, spare_mirrors: bool = False) -> None:
        self._cluster = cluster
        self.ranking = PreemptionRanking(cluster, order, spare_mirrors=spare_mirrors)
        # For fewer rows it is not worth while to ask filters beyond single rows first. Tests set it to 0.
        self.worth_parting = 64
        self._cache: CacheByClass[CachedTrials] = CacheByClass(
            as_many_as(_CACHED_TRIALS, cluster.nodes, least=_CACHED_CLASSES, most=256)
        )

    def on(
        self, preemptor: Preemptor, rows: Int64s, may_disrupt: VictimFilter | None, cost: VictimCost | None = None
    ) -> TrialTable:
        """Return the trials on ``rows``, ascending. With a ``cost`` the dearest pods are given back first."""
        if may_disrupt is not None or cost is not None or not len(rows):
            return self._try(preemptor, rows, may_disrupt, cost=cost)
        if self._cluster.nominations.depend_on_pods() or not preemptor.handle.is_row_local(preemptor.state):
            return self._try_open(preemptor, rows)
        # Refresh all rows: ``rows`` may be only some of those on which preemption may help.
        cached = self._refreshed(preemptor, self._cluster.nodes.all_rows)
        table = TrialTable(rows, cached.refused[rows], cached.criteria[:, rows], cached.victims_on, cached.decoders)
        own = self._cluster.nodes.row_of.get(preemptor.pod.nominated_node_name, -1)
        for at in np.flatnonzero(rows == own).tolist():
            again = self._try(preemptor, rows[at : at + 1], None)
            table.refused[at], table.criteria[:, at] = again.refused[0], again.criteria[:, 0]
            table.victims_on = {**cached.victims_on, **again.victims_on}
            table.decoders = {**cached.decoders, **again.decoders}
        return table

    def refused_on(
        self, preemptor: Preemptor, row: int, local: RowFilters, wide: int, counted: Sequence[Container[int]]
    ) -> tuple[int, Decoders]:
        """Return why a row is no candidate, 0 if it may be one, as in a `TrialTable`, and further decoders.

        The last three arguments are those of `refused_without`.
        """
        gone = self.ranking.below(row, preemptor.pod.priority)
        if not gone:
            return WITHOUT_VICTIMS, {}
        refused = self.refused_without(preemptor.pod, row, gone, local, wide, counted)
        if refused is not None:
            return refused, {}
        table = self._try(preemptor, np.array([row]), None)
        return table.refused.item(0), table.decoders

    def refused_without(
        self,
        pod: PodRecord,
        row: int,
        gone: Sequence[PodRecord],
        local: RowFilters,
        wide: int,
        counted: Sequence[Container[int]],
    ) -> int | None:
        """Return why a row would reject the pod if some pods were gone, beside pods nominated to it; 0 if it would not.

        ``local`` are the filters of single rows. ``wide`` is the present rejection by others, which count the pods of
        the classes (ids) in any of ``counted``. None if these must be asked again, since such a pod is gone or
        nominated.
        """
        rivals = self._cluster.nominations.rivals(row, pod, pod.uid)
        for other in (*gone, *rivals):
            for classes in counted:
                if other.pod_class.id in classes:
                    return None
        with_rivals = first_of(local.refused(pod, row, gone, rivals), wide) if rivals else 0
        return with_rivals or first_of(local.refused(pod, row, gone), wide)

    def best(self, preemptor: Preemptor, outcome: Outcome, lot: int) -> preemption_plan.PreemptionPlan | None:
        """Return the plan with the best of the trials that `on` returns for the resolvable rows of ``outcome``.

        It has no details. None if a full scan is needed: filters depend on other rows, or ``outcome`` is not the cached
        one of the class.
        """
        nodes = self._cluster.nodes
        if outcome.position != nodes.changes.position or self._cluster.nominations.depend_on_pods():
            return None
        cached, hashes = self._refreshed(preemptor, outcome.resolvable), nodes.name_hash
        order = cached.order
        if order is None or len(order.stale) > len(cached.refused) // 4:
            order = cached.order = CandidateOrder()
            rows = outcome.resolvable()
            order.fill(rows, cached.refused[rows], cached.criteria[:, rows], hashes[rows])
        own = nodes.row_of.get(preemptor.pod.nominated_node_name, -1)
        decoders, own_trial = cached.decoders, None
        stale = order.stale
        order.stale = {}
        if own >= 0:
            # The trial on the nominated row is right for this pod alone.
            own_trial, decoders = self._try_own(preemptor, own, decoders)
            stale[own] = own_trial
            order.stale[own] = None
        for row in stale if len(stale) == 1 else sorted(stale):
            order.remove(row)
            if outcome.is_resolvable(row):
                order.put(row, stale[row] or cached.trial(row), hashes.item(row))
        drawn = order.draw(lot, MOST_EQUALS, own)
        if drawn is None:
            return preemption_plan.without_candidates(len(nodes), tally(order.numbers, decoders))
        best, equals = drawn
        trial = own_trial if own_trial is not None and best == own else cached.trial(best)
        chosen = preemption_plan.PreemptionCandidate(
            nodes.name(best), tuple(map(self._cluster.pods.record, trial.victims)), trial.key[0], trial.key
        )
        choice = preemption_plan.CandidateChoice(order.numbers[0], tuple(map(nodes.names.__getitem__, equals)))
        return preemption_plan.PreemptionPlan(True, chosen=chosen, choice=choice)

    def _try_own(self, preemptor: Preemptor, row: int, decoders: Decoders) -> tuple[RowTrial, Decoders]:
        """Return the trial on the row that a pod is nominated to, without that nomination, and the decoders for it."""
        pod = preemptor.pod
        if (filters := preemptor.handle.row_filters(preemptor.state, pod)) is not None:
            filters.explain(pod, decoders)
            return self._try_row(filters, pod, row, pod.uid), decoders
        table = self._try(preemptor, np.array([row]), None)
        return table.trial(0), {**decoders, **table.decoders}

    def _refreshed(self, preemptor: Preemptor, resolvable: Callable[[], Int64s]) -> CachedTrials:
        """Return the up-to-date trials of the pod's class and priority; the pod's own nomination counts in them.

        Preemption may help on ``resolvable`` rows only; others are tried when they have changed.
        """
        nodes, budgets = self._cluster.nodes, self._cluster.budgets
        handle, state, pod = preemptor.handle, preemptor.state, preemptor.pod
        cached = self._cache.get(pod.pod_class, (pod.priority, state.skip_filter), CachedTrials)
        if cached.position == nodes.changes.position and cached.budgets == budgets.changes.position:
            return cached
        rows = self._changed(cached) if cached.position >= 0 else None
        if rows is None:
            cached.refused = np.full(nodes.count, WITHOUT_VICTIMS, dtype=np.int64)
            cached.criteria = np.zeros((len(UPSTREAM), nodes.count), dtype=np.int64)
            cached.victims_on, cached.decoders, cached.order = {}, {}, None
            cached.update(self._try(preemptor, resolvable(), None, own_uid=""), nodes.count)
        elif rows:
            pod_count = nodes.entries.pod_count
            one_by_one = handle.row_filters(state, pod, len(rows))
            if one_by_one is None or sum(map(pod_count.__getitem__, rows)) > _FEW_PODS:
                cached.update(self._try(preemptor, np.array(rows, dtype=np.int64), None, own_uid=""), nodes.count)
            else:
                one_by_one.explain(pod, cached.decoders)
                for row in rows:
                    cached.put(row, self._try_row(one_by_one, pod, row, ""), nodes.count)
        # Only now: a plugin that failed must be called again.
        cached.position, cached.budgets = nodes.changes.position, budgets.changes.position
        return cached

    def _changed(self, cached: CachedTrials) -> list[int] | None:
        """Return the rows to try again, ascending: changed ones, and those of pods of changed budgets; None for all."""
        rows, log = self._cluster.nodes.changes.entries_since(cached.position), self._cluster.budgets.changes
        if rows is not None and cached.budgets == log.position:
            return sorted(set(rows))
        budgets = log.entries_since(cached.budgets)
        if rows is None or budgets is None:
            return None
        # If the pod does not fit with all potential victims gone, budgets make no difference.
        found = self._cluster.rows_of(budgets)
        found = found[found < len(cached.refused)]
        return sorted({*rows, *found[cached.refused[found] == 0].tolist()})

    def _try_open(self, preemptor: Preemptor, rows: Int64s) -> TrialTable:
        """Try the rows where victims may change the answers of filters beyond single rows; cached trials do for others.

        These answers stay if no potential victim on the row counts for these filters.
        """
        handle, state, pod = preemptor.handle, preemptor.state, preemptor.pod
        parts = handle.filter_parts(state, pod) if len(rows) >= self.worth_parting else None
        if parts is None:
            return self._try(preemptor, rows, None)
        wide = handle.filter_view(parts.wide, pod, View(self._cluster, rows))
        may_change = np.zeros(self._cluster.nodes.count, dtype=np.bool_)
        may_change[self._cluster.nominations.rows()] = True
        pods = self._cluster.pods
        lower = np.flatnonzero((pods.row[: pods.count] != NO_ROW) & (pods.priority[: pods.count] < pod.priority))
        for predicate in parts.counted:
            matching = self._cluster.matcher(predicate).matching(pods.pod_class[lower])
            may_change[pods.row[lower[matching]]] = True
        is_open = may_change[rows]
        if is_open.all():
            return self._try(preemptor, rows, None)
        alone = self._refreshed(Preemptor(handle, parts.local, pod), self._cluster.nodes.all_rows)
        refused, criteria, beyond = alone.refused[rows], alone.criteria[:, rows], wide.refused
        # The first filter of the profile counts, which has the smaller number.
        first = np.where((refused == 0) | (refused == NO_VICTIM_NEEDED), beyond, np.minimum(refused, beyond))
        refused[beyond != 0] = first[beyond != 0]
        table = self._try(preemptor, rows[is_open], None)
        refused[is_open], criteria[:, is_open] = table.refused, table.criteria
        decoders = {**alone.decoders, **wide.decoders, **table.decoders}
        return TrialTable(rows, refused, criteria, {**alone.victims_on, **table.victims_on}, decoders)

    def _try(
        self,
        preemptor: Preemptor,
        rows: Int64s,
        may_disrupt: VictimFilter | None,
        own_uid: str | None = None,
        cost: VictimCost | None = None,
    ) -> TrialTable:
        """Try the rows; the nomination of ``own_uid`` does not count (None: the pod's own)."""
        potential, order = self._potential_victims(preemptor.pod, rows, may_disrupt), None
        if cost is not None:
            slots = potential.entries
            violating = beyond_budgets(self._cluster, potential)
            potential = PotentialVictims(potential.starts, slots, potential.rows, violating)
            sets = VictimSets(np.arange(len(slots) + 1), slots, preemptor.facts, violating.astype(np.int64))
            order = cost.reprieve_order(sets, potential.owners)
        own_uid = preemptor.pod.uid if own_uid is None else own_uid
        return choose_victims(preemptor, rows, potential, own_uid, order=order, cost=cost)

    def _try_row(self, filters: RowFilters, pod: PodRecord, row: int, own_uid: str) -> RowTrial:
        """Try one row, without arrays."""
        records = self.ranking.below(row, pod.priority)
        refused = filters.refused_at_last(pod, row, records, own_uid) if records else WITHOUT_VICTIMS
        if refused:
            return RowTrial(refused)
        violating = [False] * len(records)
        if len(self._cluster.budgets):
            slots = np.array([other.slot for other in records], dtype=np.int64)
            violating = beyond_budgets(self._cluster, Lists(np.array([0, len(records)]), slots)).tolist()
        chosen = choose_victims_on(filters, pod, row, records, violating, own_uid)
        if not chosen:
            return RowTrial(NO_VICTIM_NEEDED)
        victims = list(map(records.__getitem__, chosen))
        key = cost_of(victims, sum(map(violating.__getitem__, chosen)))
        return RowTrial(0, key, tuple([victim.slot for victim in victims]))

    def _potential_victims(self, pod: PodRecord, rows: Int64s, may_disrupt: VictimFilter | None) -> PotentialVictims:
        """Return the lower-priority pods on ``rows``; rows that have none are left out."""
        ranking = self.ranking
        if len(rows):
            ranking.refresh()
        places = ranking.priorities[rows] < pod.priority
        slots = ranking.slots[rows][places].astype(np.int64)
        owners = np.repeat(np.arange(len(rows)), places.sum(axis=1))
        if may_disrupt is not None and len(slots):
            allowed = may_disrupt(pod, slots)
            slots, owners = slots[allowed], owners[allowed]
        return PotentialVictims.on(rows, owners, slots)


def first_of(refused: int, other: int) -> int:
    """Return the rejection by the first filter out of two outcomes' entries; 0 if there is none."""
    return min(refused, other) if refused and other else refused or other


class CachedTrials:
    """The trials on every row, as of ``position`` of the change log and ``budgets`` of the log of budgets.

    ``order`` is None until candidates are asked for in order.
    """

    __slots__ = ("budgets", "criteria", "decoders", "order", "position", "refused", "victims_on")

    def __init__(self) -> None:
        self.position = self.budgets = -1
        self.refused: Int64s = np.empty(0, dtype=np.int64)
        self.criteria: Int64s = np.empty((len(UPSTREAM), 0), dtype=np.int64)
        self.victims_on: dict[int, Sequence[int]] = {}
        self.decoders: Decoders = {}
        self.order: CandidateOrder | None = None

    def trial(self, row: int) -> RowTrial:
        """Return the trial on a row."""
        refused, key = self.refused.item(row), tuple(self.criteria[:, row].tolist())
        return RowTrial(refused, key, () if refused else self.victims_on[row])

    def update(self, table: TrialTable, count: int) -> None:
        """Put in trials on some rows, out of ``count``."""
        if count > len(self.refused):
            self._grow(count)
        self.refused[table.rows], self.criteria[:, table.rows] = table.refused, table.criteria
        self.victims_on.update(table.victims_on)
        self.decoders.update(table.decoders)
        if self.order is not None:
            self.order.stale.update(dict.fromkeys(table.rows.tolist()))

    def put(self, row: int, trial: RowTrial, count: int) -> None:
        """Put in the trial on a row, out of ``count``."""
        if count > len(self.refused):
            self._grow(count)
        self.refused[row], self.criteria[:, row] = trial.refused, trial.key
        if trial.victims:
            self.victims_on[row] = trial.victims
        else:
            self.victims_on.pop(row, None)
        if self.order is not None:
            self.order.stale[row] = trial

    def _grow(self, count: int) -> None:
        self.refused, self.criteria = grown(self.refused, count), grown(self.criteria, count)


Key = tuple[int, ...]
"""The criteria of a candidate, the most important first; smaller is better."""

_ROW_BITS = 32
_ROW_MASK = (1 << _ROW_BITS) - 1


class CandidateOrder:
    """The trials on rows whose rejection preemption might resolve: candidates by their keys, and the others' numbers.

    Equal candidates are ordered by the hashes of their nodes' names, then by row. ``numbers`` counts the rows by
    result, 0 for candidates. ``stale`` are the rows to update, each with its trial if that is known.
    """

    __slots__ = ("_buckets", "_keys", "_placed", "numbers", "stale")

    def __init__(self) -> None:
        self.numbers: Counter[int] = Counter()
        self.stale: dict[int, RowTrial | None] = {}
        # By key, the entries of equals, ascending: the name's hash, then the row, in one number.
        self._buckets: dict[Key, list[int]] = {}
        self._keys: list[Key] = []
        # By row, the result, the key, and the entry.
        self._placed: dict[int, tuple[int, Key, int]] = {}

    def fill(self, rows: Int64s, refused: Int64s, criteria: Int64s, name_hashes: UInt64s) -> None:
        """Put in rows at first: ``criteria`` is ``[criteria, rows]``, the others ``[rows]``."""
        order = np.lexsort((name_hashes, *criteria[::-1], refused != 0))
        rows, refused, criteria = rows[order], refused[order], criteria[:, order]
        keys = list(map(tuple, criteria.T.tolist()))
        entries = list(map(or_, map(lshift, name_hashes[order].tolist(), repeat(_ROW_BITS)), rows.tolist()))
        self._placed = dict(zip(rows.tolist(), zip(refused.tolist(), keys, entries, strict=True), strict=True))
        self.numbers.update(refused.tolist())
        for first, end in pairwise(runs(*criteria[:, : self.numbers[0]]).tolist()):
            self._keys.append(keys[first])
            self._buckets[keys[first]] = entries[first:end]

    def put(self, row: int, trial: RowTrial, name_hash: int) -> None:
        """Put in a row that is not in it."""
        if row in self._placed:
            raise ValueError(f"row {row} has a place already")
        refused, key, entry = trial.refused, trial.key, name_hash << _ROW_BITS | row
        self._placed[row] = refused, key, entry
        self.numbers[refused] += 1
        if not refused:
            bucket = self._buckets.get(key)
            if bucket is None:
                bucket = self._buckets[key] = []
                insort(self._keys, key)
            insort(bucket, entry)

    def remove(self, row: int) -> None:
        """Remove a row if it is there."""
        placed = self._placed.pop(row, None)
        if placed is None:
            return
        refused, key, entry = placed
        self.numbers[refused] -= 1
        if not refused:
            bucket = self._buckets[key]
            del bucket[bisect_left(bucket, entry)]
            if not bucket:
                del self._buckets[key], self._keys[bisect_left(self._keys, key)]

    def draw(self, lot: int, most: int, preferred: int) -> tuple[int, tuple[int, ...]] | None:
        """Return the row of the best key, and the first ``most`` rows that have it. None without candidates.

        Of equals it is the ``preferred`` row if that is one of them, else the one in place ``lot`` modulo their number.
        """
        if not self._keys:
            return None
        best = self._keys[0]
        bucket = self._buckets[best]
        is_best = self._placed.get(preferred, ())[:2] == (0, best)
        row = preferred if is_best else bucket[lot % len(bucket)] & _ROW_MASK
        return row, tuple([entry & _ROW_MASK for entry in bucket[:most]])
