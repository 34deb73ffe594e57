"""The filters and scores of a profile for one row at a time, without arrays: used when few rows have changed.

Source: pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct

from podium.cluster.arrays import Int64s
from podium.cluster.nominations import Nominations
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cache.class_cache import CachedRows, CellFilter, Cells, CellScore, OneCell
from podium.framework.handle import CycleState
from podium.framework.plugin import OneRowFilterPlugin, Plugin, RangeNormalizePlugin, Scope
from podium.framework.scoring import Rater
from podium.framework.verdicts import Decoders, Outcome, blame

if TYPE_CHECKING:
    from podium.framework.runner import Runner

NO_FIT = -1
"""The total of a row that a pod does not fit."""

FEW_ROWS = 16
"""Up to this number of rows are evaluated one by one; more are evaluated in arrays."""


def has_one_row_form(plugin: Plugin) -> bool:
    """Return whether a plugin has a one-row form, and no subclass changed only the other form."""
    if not isinstance(plugin, OneRowFilterPlugin):
        return False
    for kind in type(plugin).__mro__:
        if "filter_row" in vars(kind):
            return True
        if "filter_rows" in vars(kind):
            return False
    return True


class RowFilters(Struct, eq=False):
    """The verdicts of the filters on single rows for the pods of a class, as entries of an `Outcome`.

    Pods on the row may be taken as ``gone``, and others as ``joined``. Verdicts that only a node object can change are
    looked up: ``of_nodes`` are the rejections of scope NODE. ``filters`` are those of scope ROW with positions, in
    order.
    """

    nominations: Nominations
    of_nodes: CachedRows
    filters: Sequence[tuple[int, OneRowFilterPlugin]]

    def refused(
        self, pod: PodRecord, row: int, gone: Sequence[PodRecord] = (), joined: Sequence[PodRecord] = ()
    ) -> int:
        """Return the first rejection on a row, 0 if there is none; nominated pods are ignored."""
        by_node: int = self.of_nodes.values.item(row)
        for index, plugin in self.filters:
            if by_node and by_node >> Outcome.SHIFT < index:
                break
            # Like `Calling`, which would cost as much as most plugins take to answer.
            try:
                code = plugin.filter_row(pod, row, gone, joined)
            except BaseException as error:
                blame(error, plugin.name, "Filter", pod)
                raise
            if code:
                return (index << Outcome.SHIFT) + code
        return by_node

    def beside(self, pod: PodRecord, row: int, gone: Sequence[PodRecord], own_uid: str) -> int:
        """Return the first rejection on a row beside the pods nominated to it; 0 if there are none of these.

        Only pods that keep room from ``pod`` count (`Nominations.counts_for`); that of ``own_uid`` does not.
        """
        if not self.nominations.uids:
            return 0
        nominated = self.nominations.rivals(row, pod, own_uid)
        return self.refused(pod, row, gone, nominated) if nominated else 0

    def refused_at_last(self, pod: PodRecord, row: int, gone: Sequence[PodRecord], own_uid: str) -> int:
        """Return the first rejection on a row beside nominated pods, otherwise without them."""
        return self.beside(pod, row, gone, own_uid) or self.refused(pod, row, gone)

    def explain(self, pod: PodRecord, decoders: Decoders) -> None:
        """Add the meaning of entries to ``decoders`` if it is missing."""
        for index, plugin in self.filters:
            if index not in decoders:
                decoders[index] = (plugin.name, plugin.explain(pod))
        for index, decoder in self.of_nodes.decoders.items():
            decoders.setdefault(index, decoder)


_AnyCells = TypeVar("_AnyCells", CellFilter, CellScore)


class CannotRankError(Exception):
    """A plugin's answers depend on more than rows and cells, so that they cannot be cached."""


class ScoredRows(NamedTuple):
    """Feasible rows, their totals without the scores by cells, and the columns of their cells: ``[n]`` each."""

    rows: Int64s
    totals: Int64s
    columns: list[Int64s]


class CachedRawScores:
    """The cells of a normalized score that depends on the node object: rows of equal raw score."""

    def __init__(self, plugin: RangeNormalizePlugin, raw: Int64s) -> None:
        self._normalize = plugin.normalize_within
        self.raw = raw

    def is_current(self, pod: PodRecord) -> bool:
        """Return True: the cells are valid as long as no node changes."""
        return True

    def columns(self, view: View) -> list[Int64s]:
        return [view.take(self.raw)]

    def of_row(self, row: int) -> tuple[int, ...]:
        return (self.raw.item(row),)

    def score(self, pod: PodRecord, rows: Sequence[int], sizes: Sequence[int]) -> list[int]:
        """Return the scores normalized by the lowest and highest of these."""
        raw = [self.raw.item(row) for row in rows]
        lowest, highest = min(raw), max(raw)
        return [self._normalize(score, lowest, highest) for score in raw]


class RowEvaluator:
    """The combined verdict and score of all plugins that apply to a class of pods, for single rows.

    Raises CannotRankError if that is impossible. Valid until a node changes or `is_current` returns False.
    """

    def __init__(self, runner: Runner, state: CycleState, pod: PodRecord) -> None:
        self._runner = runner
        self._skipped = frozenset(state.skip_filter)
        self.filters = [
            _required(None if placed.cells is None else placed.cells.filter_cells(pod))
            for placed in runner.wide_filters(state)
        ]
        raters = [rater for rater in runner.scoring.raters if not rater.never_scores(pod.pod_class)]
        node_raters = [rater for rater in raters if rater.kept and rater.scope is Scope.NODE]
        self._row_raters = [rater for rater in raters if rater.kept and rater.scope is Scope.ROW]
        scores = [(self._score_cells(rater, state, pod), rater.weight) for rater in raters if not rater.kept]
        each: list[Cells] = [*self.filters, *(cells for cells, _ in scores)]
        self._conditions = [cells.is_current for cells in each if not isinstance(cells, CachedRawScores)]
        # Scores that may distinguish rows. Others give all rows the same, which does not change the choice.
        self.scores = [(cells, weight) for cells, weight in scores if self._distinguishes(cells)]
        self._distinguishing: list[Cells] = [*self.filters, *(cells for cells, _ in self.scores)]
        refused = runner.kept.refusals(state, pod)[0].values
        of_nodes = runner.scoring.kept_sum(node_raters, Scope.NODE, state, pod)
        if of_nodes.min(where=refused == 0, initial=0) < 0:
            raise CannotRankError
        # By row, the scores that depend on node objects alone, or `NO_FIT`.
        self._of_nodes = np.where(refused == 0, of_nodes, NO_FIT)
        self._renewals = runner.cluster.nodes.entries.renewals
        self._total_of_row = self._by_row(state, pod.pod_class)

    def has_one_cell(self) -> bool:
        """Return whether all nodes are in one cell, as long as this is valid."""
        return not self._distinguishing

    def _distinguishes(self, cells: CellScore) -> bool:
        """Return whether some nodes may be in another cell than others."""
        nodes = self._runner.cluster.nodes
        if isinstance(cells, CachedRawScores):
            raw = cells.raw[nodes.present[: nodes.count]]
            return bool((raw != raw[:1]).any())
        return not isinstance(cells, OneCell) and bool(cells.columns(View(self._runner.cluster, nodes.all_rows()[:0])))

    def is_current(self, state: CycleState, pod: PodRecord) -> bool:
        """Return whether the same plugins apply and group rows as before."""
        if state.skip_filter is not self._skipped and state.skip_filter != self._skipped:
            return False
        for is_current in self._conditions:  # noqa: SIM110 - a loop, since this runs for every pod
            if not is_current(pod):
                return False
        return True

    def all_rows(self, state: CycleState, pod: PodRecord) -> ScoredRows:
        """Return all feasible rows."""
        rows = np.flatnonzero(self._runner.kept.refusals(state, pod)[1].values == 0)
        if self._runner.cluster.nominations.uids:
            rows = np.setdiff1d(rows, self._runner.refused_beside(state, pod, rows), assume_unique=True)
        of_rows = self._runner.scoring.kept_sum(self._row_raters, Scope.ROW, state, pod)
        return self._scored_rows(rows, of_rows[rows])

    def some_rows(self, state: CycleState, pod: PodRecord, rows: Sequence[int]) -> list[int]:
        """Return the totals of some rows, ascending; `NO_FIT` for rows that the pod does not fit."""
        entries = self._runner.cluster.nodes.entries
        if self._renewals != entries.renewals:
            self._renewals, self._total_of_row = entries.renewals, self._by_row(state, pod.pod_class)
        total_of_row = self._total_of_row
        if total_of_row is None:
            totals = self._in_arrays(state, pod, np.array(rows, dtype=np.int64))
        else:
            totals = list(map(total_of_row, repeat(pod), rows))
        if self._runner.cluster.nominations.uids:
            found = dict(zip(rows, totals, strict=True))
            fitting = np.array([row for row, total in found.items() if total >= 0], dtype=np.int64)
            found |= dict.fromkeys(self._runner.refused_beside(state, pod, fitting).tolist(), NO_FIT)
            totals = list(found.values())
        return totals

    def key(self, row: int) -> tuple[int, ...]:
        """Return the cell of a row."""
        distinguishing = self._distinguishing
        if not distinguishing:
            return ()
        if len(distinguishing) == 1:
            return distinguishing[0].of_row(row)
        return tuple([entry for cells in distinguishing for entry in cells.of_row(row)])

    def _in_arrays(self, state: CycleState, pod: PodRecord, rows: Int64s) -> list[int]:
        """Return the same as `some_rows`, regardless of nominated pods."""
        outcome = self._runner.filter_view(state, pod, View(self._runner.cluster, rows), Scope.ROW)
        fitting = rows[(outcome.refused == 0) & (self._of_nodes[rows] >= 0)]
        judged = self._scored_rows(fitting, self._runner.scoring.sum_of(self._row_raters, state, pod)(fitting))
        totals = dict.fromkeys(rows.tolist(), NO_FIT)
        totals.update(zip(judged.rows.tolist(), judged.totals.tolist(), strict=True))
        return list(totals.values())

    def _scored_rows(self, rows: Int64s, of_rows: Int64s) -> ScoredRows:
        """Return the rows with the scores that depend on the pods of a row."""
        view = View(self._runner.cluster, rows)
        if of_rows.min(initial=0) < 0:
            raise CannotRankError
        columns = [column for cells in self._distinguishing for column in cells.columns(view)]
        return ScoredRows(rows, self._of_nodes[rows] + of_rows, columns)

    def _by_row(self, state: CycleState, pod_class: PodClass) -> Callable[[PodRecord, int], int] | None:
        """Return a function that sums the weighted scores of a row for a pod of the class, `NO_FIT` if it does not fit.

        It holds as long as the class exists and `podium.cluster.nodes.ColumnEntries` shows the same arrays. None if a
        plugin has no form for one row.
        """
        placed = [placed.by_row for placed in self._runner.filters_of(state) if placed.scope is Scope.ROW]
        raters = [(rater.by_row, rater.weight) for rater in self._row_raters]
        filters = [plugin.row_filter(pod_class) for plugin in placed if plugin is not None]
        scores = [(plugin.row_score(pod_class), weight) for plugin, weight in raters if plugin is not None]
        if len(filters) < len(placed) or len(scores) < len(raters):
            return None
        of_nodes = self._of_nodes.data

        def total_of_row(pod: PodRecord, row: int) -> int:
            found: int = of_nodes[row]
            if found < 0:
                return NO_FIT
            for fits in filters:
                if not fits(pod, row):
                    return NO_FIT
            for score, weight in scores:
                found += weight * score(pod, row)
            return found

        return total_of_row

    def _score_cells(self, rater: Rater, state: CycleState, pod: PodRecord) -> CellScore:
        if rater.scope is Scope.NODE and rater.ranged is not None:
            return CachedRawScores(
                rater.ranged, self._runner.scoring.raw(rater, state, pod, View(self._runner.cluster))
            )
        return _required(None if rater.cells is None else rater.cells.score_cells(pod))


def _required(cells: _AnyCells | None) -> _AnyCells:
    if cells is None:
        raise CannotRankError
    return cells
