"""The verdicts of a profile's filters for the pod classes used last, updated row by row.

Source of the rule for nominated pods: pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, cast
from weakref import ref

import numpy as np

from podium.cluster.arrays import ChangeLog, Int64s
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cache import class_cache
from podium.framework.cache.class_cache import CacheByClass, CachedRows, as_many_as
from podium.framework.cache.row_filters import FEW_ROWS, RowFilters, has_one_row_form
from podium.framework.handle import CycleState
from podium.framework.plugin import OneRowFilterPlugin, Scope, is_own
from podium.framework.verdicts import Counted, Decoders, Outcome

if TYPE_CHECKING:
    from podium.framework.runner import PlacedFilter, Runner

_NODE, _ROW = Scope.NODE, Scope.ROW
KEPT_CLASSES = 64
# More changes of nodes than these are not searched for some rows.
_FEW_CHANGES = 256
KEPT_ENTRIES = 1 << 20
"""With few nodes more classes are cached: as many as have this number of rows together."""


class CachedFilters:
    """The rejections of scope NODE and ROW, and the outcomes, of the 64 classes used last.

    ``few_rows`` is the largest number of rows that are evaluated one by one rather than in arrays.
    """

    def __init__(self, runner: Runner, cache: CacheByClass[CachedRows], filters: Sequence[PlacedFilter]) -> None:
        self._runner = runner
        self._cluster = runner.cluster
        self._cache = cache
        self._filters = filters
        limit = as_many_as(KEPT_ENTRIES, runner.cluster.nodes, least=KEPT_CLASSES)
        self._outcomes: CacheByClass[CachedOutcome] = CacheByClass(limit)
        # By the set of skipped plugins, the filters of scope ROW with their positions; None if one lacks that form.
        self._one_by_one: dict[frozenset[str], list[tuple[int, OneRowFilterPlugin]] | None] = {}
        self._wide = frozenset(placed.plugin.name for placed in filters if placed.scope is Scope.CLUSTER)
        # By the set of skipped plugins: these, and all of scope CLUSTER.
        self._local_known: dict[frozenset[str], frozenset[str]] = {}
        # For the class, the skipped plugins and the position in the log of nodes of the last call.
        self._last_row_filters: tuple[ref[PodClass], frozenset[str], int, RowFilters] | None = None
        self.few_rows = FEW_ROWS
        self._are_own = all(is_own(placed.plugin) for placed in filters)

    def filter_all(self, state: CycleState, pod: PodRecord) -> Outcome:
        """Filter all rows, considering nominated pods; every filter must depend on the row alone.

        If nominated pods count for a row, ``pod`` must also fit beside them. A rejection beside them is the verdict for
        that node, whatever the plain one was. Cached verdicts count the pod's own nomination too; that row is evaluated
        again without it.
        """
        nodes = self._cluster.nodes
        kept = self._outcomes.get(pod.pod_class, (state.skip_filter, pod.priority), CachedOutcome)
        by_row = self._cache.get(pod.pod_class, (_ROW, self._but_local(state)), CachedRows)
        if not self._refresh_few(kept, by_row, state, pod):
            self.refusals(state, pod)
            kept.decoders.update(by_row.decoders)
            kept.refresh(nodes.changes, nodes.all_rows(), partial(self._with_nominations, kept, by_row, state, pod, ""))
        if class_cache.VERIFIES:
            self.refusals(state, pod)
            whole = self._with_nominations(kept, by_row, state, pod, "", nodes.all_rows())
            class_cache.verify(kept.outcome().refused, whole)
        own = nodes.row_of.get(pod.nominated_node_name, -1)
        if own < 0:
            return kept.outcome()
        return kept.outcome_but(own, int(self._with_nominations(kept, by_row, state, pod, pod.uid, np.array([own]))[0]))

    def _refresh_few(self, kept: CachedOutcome, by_row: CachedRows, state: CycleState, pod: PodRecord) -> bool:
        """Update the rejections and the outcome together if few rows have changed; return whether that is so."""
        nodes = self._cluster.nodes
        position = kept.position
        if position < 0 or by_row.position != position or len(by_row.values) != nodes.count:
            return False
        missed = nodes.changes.entries_since(position)
        if not missed:
            return missed is not None
        rows = missed if len(missed) == 1 else sorted(set(missed))
        filters = self.row_filters(state, pod, len(rows))
        if filters is None:
            return False
        values, entries = by_row.values, []
        for row in rows:
            values[row] = plain = filters.refused(pod, row)
            entries.append(filters.beside(pod, row, (), "") or plain)
        filters.explain(pod, by_row.decoders)
        kept.decoders.update(by_row.decoders)
        by_row.position = nodes.changes.position
        kept.put(rows, entries, by_row.position)
        return True

    def _with_nominations(
        self, kept: CachedOutcome, by_row: CachedRows, state: CycleState, pod: PodRecord, own_uid: str, rows: Int64s
    ) -> Int64s:
        """Return the verdicts of some rows: the cached rejections, overridden by those beside nominated pods."""
        filters = self.row_filters(state, pod, len(rows))
        if filters is not None:
            filters.explain(pod, kept.decoders)
            plain = by_row.values.item
            entries = [filters.beside(pod, row, (), own_uid) or plain(row) for row in rows.tolist()]
            return np.array(entries, dtype=np.int64)
        refused: Int64s = by_row.values[rows]
        if self._cluster.nominations.uids:
            outcome = Outcome.of(refused, {})
            outcome.override(*self._runner.beside(state, pod, View(self._cluster, rows), own_uid))
            kept.decoders.update(outcome.decoders)
        return refused

    def fits(self, state: CycleState, pod: PodRecord, row: int) -> bool | None:
        """Return the result of `filter_few` for one row: whether no filter rejects it."""
        filters = self.row_filters(state, pod, 1, is_known=True)
        return None if filters is None else not filters.refused_at_last(pod, row, (), pod.uid)

    def filter_few(self, state: CycleState, pod: PodRecord, rows: Int64s) -> Outcome | None:
        """Filter few rows one by one, considering nominated pods; None if arrays are needed or faster.

        Arrays are also used if nothing is cached for the class: a few rows do not justify filtering all nodes.
        """
        filters = self.row_filters(state, pod, len(rows), is_known=True)
        if filters is None:
            return None
        entries = [filters.refused_at_last(pod, row, (), pod.uid) for row in rows.tolist()]
        outcome = Outcome.of(np.array(entries, dtype=np.int64), {})
        if any(entries):
            filters.explain(pod, outcome.decoders)
        return outcome

    def row_filters(
        self,
        state: CycleState,
        pod: PodRecord,
        rows: int,
        skipped: frozenset[str] | None = None,
        among: Set[int] | None = None,
        is_known: bool = False,
    ) -> RowFilters | None:
        """Return the filters for one row at a time, for ``rows`` calls; None if arrays are needed or faster.

        ``skipped`` are left out (None: those that the pod skips). With ``among`` they hold for these rows alone. If the
        class ``is_known``, None also if nothing is cached for it.
        """
        if rows > self.few_rows:
            return None
        if skipped is None:
            skipped = state.skip_filter
        position = self._cluster.nodes.node_changes.position
        last = self._last_row_filters
        if last is not None and last[0]() is pod.pod_class and last[1] is skipped and last[2] == position:
            return last[3]
        if is_known and self._cache.get(pod.pod_class, (_NODE, self._but_local(state)), CachedRows).position < 0:
            return None
        filters = self._in_row_form(skipped)
        if filters is None:
            return None
        found = RowFilters(self._cluster.nominations, self._of_nodes(state, pod, among), filters)
        if among is None:
            self._last_row_filters = ref(pod.pod_class), skipped, position, found
        return found

    def _in_row_form(self, skipped: frozenset[str]) -> list[tuple[int, OneRowFilterPlugin]] | None:
        if skipped not in self._one_by_one:
            if len(self._one_by_one) > KEPT_CLASSES:
                self._one_by_one.clear()
            active = [each for each in self._filters if each.plugin.name not in skipped and each.scope is not _NODE]
            able = [(each.index, cast(OneRowFilterPlugin, each.plugin)) for each in active]
            is_possible = all(each.scope is _ROW and has_one_row_form(each.plugin) for each in active)
            self._one_by_one[skipped] = able if is_possible else None
        return self._one_by_one[skipped]

    def local_filters(self, state: CycleState, pod: PodRecord, rows: Set[int]) -> RowFilters | None:
        """Return the filters of scope NODE and ROW for one of some rows at a time; None if one lacks that form."""
        return self.row_filters(state, pod, 0, self._but_local(state), rows)

    def refusals(self, state: CycleState, pod: PodRecord) -> tuple[CachedRows, CachedRows]:
        """Return the cached rejections of the pod's class, by the node object and including its pods."""
        nodes, by_node = self._cluster.nodes, self._of_nodes(state, pod)
        local = self._but_local(state)
        by_row = self._cache.get(pod.pod_class, (_ROW, local), CachedRows)

        def from_rows(rows: Int64s | None) -> Int64s:
            by_row.decoders.update(by_node.decoders)
            filters = None if rows is None else self.row_filters(state, pod, len(rows), local)
            if rows is not None and filters is not None:
                filters.explain(pod, by_row.decoders)
                return np.array([filters.refused(pod, row) for row in rows.tolist()], dtype=np.int64)
            return self._in_pieces(rows, of_view)

        def of_view(view: View) -> Int64s:
            part = self._runner.filter_view(state, pod, view, Scope.ROW)
            part.merge(view.take(by_node.values))
            by_row.decoders.update(part.decoders)
            return part.refused

        by_row.refresh(nodes.changes, nodes.count, from_rows)
        return by_node, by_row

    def _of_nodes(self, state: CycleState, pod: PodRecord, among: Set[int] | None = None) -> CachedRows:
        """Return the cached rejections of the pod's class that depend on the node object.

        ``among`` are the needed rows, None for all: if none of them has changed, the others are not updated.
        """
        nodes = self._cluster.nodes
        by_node = self._cache.get(pod.pod_class, (_NODE, self._but_local(state)), CachedRows)

        def of_view(view: View) -> Int64s:
            part = self._runner.filter_view(state, pod, view, Scope.NODE)
            part.refused[~view.take(nodes.present)] = Outcome.ABSENT
            by_node.decoders.update(part.decoders)
            return part.refused

        if among is not None and by_node.position >= 0 and len(by_node.values) == nodes.count:
            changed = nodes.node_changes.entries_since(by_node.position)
            if changed is not None and len(changed) <= _FEW_CHANGES and among.isdisjoint(changed):
                if class_cache.VERIFIES:
                    rows = np.array(sorted(among), dtype=np.int64)
                    class_cache.verify(by_node.values[rows], self._in_pieces(rows, of_view))
                return by_node
        by_node.refresh(nodes.node_changes, nodes.count, lambda rows: self._in_pieces(rows, of_view))
        return by_node

    def _in_pieces(self, rows: Int64s | None, of_view: Callable[[View], Int64s]) -> Int64s:
        """Return the verdicts of some rows; of all rows (None) in pieces, except for foreign plugins."""
        if rows is not None or not self._are_own:
            return of_view(View(self._cluster, rows))
        return np.concatenate([of_view(view) for view in View.pieces(self._cluster)])

    def _but_local(self, state: CycleState) -> frozenset[str]:
        """Return the skipped filters and all of scope CLUSTER: the rejections of the others are the same with these."""
        found = self._local_known.get(state.skip_filter)
        if found is None:
            if len(self._local_known) > KEPT_CLASSES:
                self._local_known.clear()
            found = self._local_known[state.skip_filter] = state.skip_filter.union(self._wide)
        return found


Compute = Callable[[Int64s], Int64s]


class CachedOutcome:
    """An outcome for every row, valid as of a position of the change log: one number for each row.

    Outcomes that were returned do not change: while the last one is still referenced, changes go to a copy.
    """

    __slots__ = ("_counted", "_explained_by", "_lent", "_refused", "decoders", "position")

    def __init__(self) -> None:
        self.decoders: Decoders = {}
        self.position = -1
        self._refused: Int64s = np.empty(0, dtype=np.int64)
        # The number of rows of each entry. All returned outcomes share one object until an entry, or the meaning of
        # entries, changes.
        self._counted = Counted({})
        self._explained_by: Decoders = {}
        self._lent: ref[Int64s] | None = None

    def refresh(self, log: ChangeLog, rows: Int64s, compute: Compute) -> None:
        """Update the outcome; ``rows`` are all rows, and ``compute`` answers for some of them, again if it failed."""
        if self.position == log.position:
            return
        changed = log.since(self.position) if self.position >= 0 and len(self._refused) == len(rows) else None
        if changed is None or len(changed) > len(rows) // 4:
            self._refused = compute(rows)
            values, numbers = np.unique(self._refused, return_counts=True)
            self._counted = Counted(dict(zip(values.tolist(), numbers.tolist(), strict=True)))
            self._lent, self.position = None, log.position
        else:
            self.put(changed.tolist(), compute(changed).tolist(), log.position)

    def outcome(self) -> Outcome:
        lent = None if self._lent is None else self._lent()
        if lent is None:
            lent = self._refused.view()
            lent.setflags(write=False)
            self._lent = ref(lent)
        if self._explained_by != self.decoders:
            self._explained_by, self._counted = dict(self.decoders), Counted(self._counted.numbers)
        outcome = Outcome.of(lent, dict(self.decoders), self._counted)
        outcome.position = self.position
        return outcome

    def outcome_but(self, row: int, refused: int) -> Outcome:
        """Return the present outcome with another entry for one row."""
        entries, numbers = self._refused.copy(), dict(self._counted.numbers or {})
        _move(numbers, int(entries[row]), refused)
        entries[row] = refused
        outcome = Outcome.of(entries, dict(self.decoders), Counted(numbers))
        outcome.position = self.position
        return outcome

    def put(self, rows: Sequence[int], entries: Sequence[int], position: int) -> None:
        """Update the outcome to a position of the log with the entries of the changed rows."""
        self.position = position
        item, changed = self._refused.item, []
        for row, after in zip(rows, entries, strict=True):
            if item(row) != after:
                changed.append((row, after))
        if not changed:
            return
        if self._lent is not None and self._lent() is not None:
            self._refused, self._lent = self._refused.copy(), None
        refused, numbers = self._refused, dict(self._counted.numbers or {})
        for row, after in changed:
            _move(numbers, refused.item(row), after)
            refused[row] = after
        self._counted = Counted(numbers)


def _move(numbers: dict[int, int], before: int, after: int) -> None:
    """Move one row from one entry to another in the counts."""
    if numbers[before] == 1:
        del numbers[before]
    else:
        numbers[before] -= 1
    numbers[after] = numbers.get(after, 0) + 1
