"""What the filters of a profile said to the classes of pods that were asked about last, brought up to date row by row.

Source of the rule for nominated pods: pkg/scheduler/framework/runtime/framework.go
(RunFilterPluginsWithNominatedPods).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, cast
from weakref import ref

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.kept.class_cache import ClassCache, KeptByClass, KeptRows, as_many_as
from podium.framework.kept.outcome import KeptOutcome
from podium.framework.kept.row_filters import FEW_ROWS, RowFilters, has_one_row_form
from podium.framework.plugin import ArrayFilterPlugin, FilterPlugin, OneRowFilterPlugin, Scope, is_own
from podium.framework.verdicts import Outcome

if TYPE_CHECKING:
    from podium.framework.runner import Runner

_NODE, _ROW = Scope.NODE, Scope.ROW
KEPT_CLASSES = 64
KEPT_ENTRIES = 1 << 20
"""Where nodes are few, more classes are kept: as many as have so many rows together."""


class PlacedFilter(Protocol):
    """A Filter plugin with its place in the profile, counted from 1."""

    index: int
    plugin: ArrayFilterPlugin | FilterPlugin
    scope: Scope


class KeptFilters:
    """The refusals of scope NODE and ROW, and the outcomes, of the 64 classes used last.

    ``few_rows`` is up to how many rows are asked one by one and not in arrays.
    """

    def __init__(self, runner: Runner, cache: ClassCache, filters: Sequence[PlacedFilter]) -> None:
        self._runner = runner
        self._cluster = runner.cluster
        self._cache = cache
        self._filters = filters
        self._outcomes: KeptByClass[KeptOutcome] = KeptByClass(
            as_many_as(KEPT_ENTRIES, runner.cluster.nodes, least=KEPT_CLASSES)
        )
        # By the plugins that are skipped.
        self._one_by_one: dict[frozenset[str], list[tuple[int, OneRowFilterPlugin]] | None] = {}
        self.few_rows = FEW_ROWS
        self._are_own = all(is_own(placed.plugin) for placed in filters)
        # Those asked for last, with the class and the plugins that are skipped.
        self._newest: tuple[Callable[[], PodClass | None], frozenset[str], RowFilters | None] = (
            _nobody,
            frozenset(),
            None,
        )

    def filter_all(self, state: CycleState, pod: PodRecord) -> Outcome:
        """Filter all rows with regard to nominated pods, where every filter answers for a row from that row alone.

        Where pods of equal or higher priority are nominated, ``pod`` must also fit beside them. A refusal beside them
        is the answer for that node, whatever the plain one was. What is kept counts the pod's own nomination too; that
        row is looked at again without it.
        """
        nodes = self._cluster.nodes
        skipped = state.skip_filter
        kept = self._outcomes.get(pod.pod_class, (skipped, pod.priority), KeptOutcome)
        by_row = self._cache.rows(pod.pod_class, (_ROW, skipped))
        if not self._refresh_few(kept, by_row, state, pod):
            self._refresh(kept, state, pod)
        own = nodes.row_of.get(pod.nominated_node_name, -1)
        if own < 0:
            return kept.outcome()
        return kept.outcome_but(own, int(self._with_nominations(kept, by_row, state, pod, np.array([own]), pod.uid)[0]))

    def _refresh(self, kept: KeptOutcome, state: CycleState, pod: PodRecord) -> None:
        """Bring what is kept of a class up to date, whatever has changed."""
        nodes = self._cluster.nodes
        _, by_row = self.refusals(state, pod)
        kept.decoders.update(by_row.decoders)
        kept.refresh(
            nodes.changes, nodes.all_rows(), lambda rows: self._with_nominations(kept, by_row, state, pod, rows, "")
        )

    def _refresh_few(self, kept: KeptOutcome, by_row: KeptRows, state: CycleState, pod: PodRecord) -> bool:
        """The same at once for the refusals and the outcome, where few rows have changed; whether that is so."""
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
            plain = filters.refused(pod, row)
            values[row] = plain
            entries.append(filters.beside(pod, row, (), "") or plain)
        filters.explain(pod, by_row.decoders)
        kept.decoders.update(by_row.decoders)
        by_row.position = nodes.changes.position
        kept.put(rows, entries, by_row.position)
        return True

    def _with_nominations(
        self,
        kept: KeptOutcome,
        by_row: KeptRows,
        state: CycleState,
        pod: PodRecord,
        rows: Int64s,
        own_uid: str,
    ) -> Int64s:
        """What is said of some rows: the refusals that are kept, and those beside nominated pods, which come first."""
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
        """What `filter_few` comes to for one row: whether no filter refuses it."""
        filters = self._filters_of_few(state, pod, 1)
        return None if filters is None else not filters.refused_at_last(pod, row, (), pod.uid)

    def filter_few(self, state: CycleState, pod: PodRecord, rows: Int64s) -> Outcome | None:
        """Filter few rows one by one, with regard to nominated pods; None where arrays are needed, or quicker.

        So they are where nothing is kept of the class: few rows are no reason to look at all nodes.
        """
        filters = self._filters_of_few(state, pod, len(rows))
        if filters is None:
            return None
        entries = [filters.refused_at_last(pod, row, (), pod.uid) for row in rows.tolist()]
        outcome = Outcome.of(np.array(entries, dtype=np.int64), {})
        if any(entries):
            filters.explain(pod, outcome.decoders)
        return outcome

    def _filters_of_few(self, state: CycleState, pod: PodRecord, rows: int) -> RowFilters | None:
        by_node = self._cache.rows(pod.pod_class, (_NODE, state.skip_filter))
        return None if by_node.position < 0 else self.row_filters(state, pod, rows)

    def row_filters(self, state: CycleState, pod: PodRecord, rows: int) -> RowFilters | None:
        """The filters for one row at a time, to be asked about so many; None where arrays are needed, or quicker."""
        if rows > self.few_rows:
            return None
        pod_class, skipped, known = self._newest
        if (
            known is not None
            and pod_class() is pod.pod_class
            and (skipped is state.skip_filter or skipped == state.skip_filter)
            and known.is_right_at(self._cluster.nodes.node_changes.position)
        ):
            return known
        filters = self._with_one_row_form(state)
        if filters is None:
            return None
        found = RowFilters(self._cluster.nominations, self._of_nodes(state, pod), filters)
        self._newest = ref(pod.pod_class), state.skip_filter, found
        return found

    def refusals(self, state: CycleState, pod: PodRecord) -> tuple[KeptRows, KeptRows]:
        """What is kept for the pod's class: the refusals that hang on the node object, and with those of its pods."""
        nodes, by_node = self._cluster.nodes, self._of_nodes(state, pod)
        by_row = self._cache.rows(pod.pod_class, (_ROW, state.skip_filter))

        def from_rows(rows: Int64s | None) -> Int64s:
            by_row.decoders.update(by_node.decoders)
            filters = None if rows is None else self.row_filters(state, pod, len(rows))
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

    def _of_nodes(self, state: CycleState, pod: PodRecord) -> KeptRows:
        """What is kept for the pod's class: the refusals that hang on the node object."""
        nodes = self._cluster.nodes
        by_node = self._cache.rows(pod.pod_class, (_NODE, state.skip_filter))

        def of_view(view: View) -> Int64s:
            part = self._runner.filter_view(state, pod, view, Scope.NODE)
            part.refused[~view.take(nodes.present)] = Outcome.ABSENT
            by_node.decoders.update(part.decoders)
            return part.refused

        by_node.refresh(nodes.node_changes, nodes.count, lambda rows: self._in_pieces(rows, of_view))
        return by_node

    def _in_pieces(self, rows: Int64s | None, of_view: Callable[[View], Int64s]) -> Int64s:
        """What is said of some rows; of all (None) in pieces, but where others' plugins answer."""
        if rows is not None or not self._are_own:
            return of_view(View(self._cluster, rows))
        return np.concatenate([of_view(view) for view in View.pieces(self._cluster)])

    def _with_one_row_form(self, state: CycleState) -> list[tuple[int, OneRowFilterPlugin]] | None:
        """The filters of scope ROW with their places, for pods whose state skips these; None where some cannot."""
        skipped = state.skip_filter
        if skipped not in self._one_by_one:
            if len(self._one_by_one) > KEPT_CLASSES:
                self._one_by_one.clear()
            asked = [
                placed
                for placed in self._filters
                if placed.plugin.name not in skipped and placed.scope is not Scope.NODE
            ]
            able = [
                (placed.index, cast(OneRowFilterPlugin, placed.plugin))
                for placed in asked
                if has_one_row_form(placed.plugin)
            ]
            is_possible = len(able) == len(asked) and all(placed.scope is Scope.ROW for placed in asked)
            self._one_by_one[skipped] = able if is_possible else None
        return self._one_by_one[skipped]


def _nobody() -> None:
    return None
