"""What the plugins of a profile say of single rows to the pods of a class: whether they fit, and the total.

What only a node object can change is looked up; what is asked again is asked about one row, without arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.kept.cells import CellFilter, Cells, CellScore, OneCell
from podium.framework.plugin import (
    CellFilterPlugin,
    FitsRow,
    RangeNormalizePlugin,
    Scope,
    ScoreRow,
)
from podium.framework.scoring import Rater

if TYPE_CHECKING:
    from podium.framework.runner import Runner

TotalOfRow = Callable[[PodRecord, int], int | None]
"""The total of a row without what is scored by cells, None where the pod does not fit."""


class CannotRankError(Exception):
    """Some plugin's answers hang on more than can be kept up to date by rows and cells."""


class Judged(NamedTuple):
    """Feasible rows, their totals without what is scored by cells, and the columns of their cells: ``[n]`` each."""

    rows: Int64s
    totals: Int64s
    columns: list[Int64s]


class KeptRaw:
    """The cells of a score that hangs on the node object and is normalised: rows of one raw score."""

    def __init__(self, plugin: RangeNormalizePlugin, raw: Int64s) -> None:
        self._normalize = plugin.normalize_within
        self._raw = raw

    def is_current(self, pod: PodRecord) -> bool:
        """For as long as no node changes."""
        return True

    def is_one_of(self, rows: Bools) -> bool:
        """Whether all of some rows are one cell."""
        raw = self._raw[rows]
        return not len(raw) or bool((raw == raw[0]).all())

    def columns(self, view: View) -> list[Int64s]:
        """The raw scores."""
        return [view.take(self._raw)]

    def of_row(self, row: int) -> tuple[int, ...]:
        """The raw score of a row."""
        return (self._raw.item(row),)

    def score(self, pod: PodRecord, rows: Sequence[int], sizes: Sequence[int]) -> list[int]:
        """Normalised by the lowest and highest of these."""
        raw = [self._raw.item(row) for row in rows]
        lowest, highest = min(raw), max(raw)
        return [self._normalize(score, lowest, highest) for score in raw]


class RowJudge:
    """The plugins that have something to say to a class of pods, as one answer for a row.

    Raises CannotRankError where that is impossible. Right until a node changes, or `is_current` says that it is not.
    """

    def __init__(self, runner: Runner, state: CycleState, pod: PodRecord) -> None:
        self._runner = runner
        self._skipped = frozenset(state.skip_filter)
        self.filters = [_filter_cells(f.cells, pod) for f in runner.filters_of(state) if f.scope is Scope.CLUSTER]
        raters = [rater for rater in runner.scoring.raters if not rater.never_scores(pod.pod_class)]
        node_raters = [rater for rater in raters if rater.kept and rater.scope is Scope.NODE]
        self._row_raters = [rater for rater in raters if rater.kept and rater.scope is Scope.ROW]
        self._nodes_total = runner.scoring.kept_sum(node_raters, Scope.NODE, state, pod)
        scores = [(self._score_cells(rater, state, pod), rater.weight) for rater in raters if not rater.kept]
        self._cells: list[Cells] = [*self.filters, *(cells for cells, _ in scores)]
        self.scores = [(cells, weight) for cells, weight in scores if not isinstance(cells, OneCell)]
        # Those that may tell rows apart.
        self._telling = [cells for cells in self._cells if not isinstance(cells, OneCell)]
        self._conditions = [cells.is_current for cells in self._cells if not isinstance(cells, KeptRaw)]
        self._refused_nodes = runner.kept.refusals(state, pod)[0].values
        self._total_of_row = self._by_row(state, pod.pod_class)

    def has_one_cell(self) -> bool:
        """Whether all nodes are one cell, for as long as this is right."""
        nodes = self._runner.cluster.nodes
        present, nowhere = nodes.present[: nodes.count], View(self._runner.cluster, nodes.all_rows()[:0])
        return not self.filters and all(
            cells.is_one_of(present) if isinstance(cells, KeptRaw) else not cells.columns(nowhere)
            for cells in self._cells
        )

    def is_current(self, state: CycleState, pod: PodRecord) -> bool:
        """Whether the same plugins have something to say, and tell rows apart as they did."""
        if state.skip_filter != self._skipped:
            return False
        for is_current in self._conditions:  # noqa: SIM110 - a loop, since this is asked for every pod
            if not is_current(pod):
                return False
        return True

    def all_rows(self, state: CycleState, pod: PodRecord) -> Judged:
        """All feasible rows."""
        by_row = self._runner.kept.refusals(state, pod)[1]
        rows = np.flatnonzero(by_row.values == 0)
        if self._runner.cluster.nominations.uids:
            rows = np.setdiff1d(rows, self._runner.refused_beside(state, pod, rows), assume_unique=True)
        of_rows = self._runner.scoring.kept_sum(self._row_raters, Scope.ROW, state, pod)
        return self._judged(rows, of_rows[rows])

    def some_rows(self, state: CycleState, pod: PodRecord, rows: Sequence[int]) -> list[tuple[int, int | None]]:
        """Some rows, ascending, each with its total, None where it is not feasible."""
        total_of_row = self._total_of_row
        if total_of_row is None:
            judged = self._in_arrays(state, pod, np.array(rows, dtype=np.int64))
        else:
            judged = [(row, total_of_row(pod, row)) for row in rows]
        if self._runner.cluster.nominations.uids and any(total is not None for _, total in judged):
            fitting = np.array([row for row, total in judged if total is not None], dtype=np.int64)
            refused = set(self._runner.refused_beside(state, pod, fitting).tolist())
            judged = [(row, None if row in refused else total) for row, total in judged]
        return judged

    def rows_at_once(self, state: CycleState, pod: PodRecord, rows: Int64s) -> Judged:
        """Those of many rows, ascending, that are feasible."""
        fitting, of_rows = self._rated(state, pod, rows)
        if self._runner.cluster.nominations.uids:
            beside = np.isin(fitting, self._runner.refused_beside(state, pod, fitting), invert=True)
            fitting, of_rows = fitting[beside], of_rows[beside]
        return self._judged(fitting, of_rows)

    def key(self, row: int) -> tuple[int, ...]:
        """The cell of a row."""
        telling = self._telling
        if not telling:
            return ()
        if len(telling) == 1:
            return telling[0].of_row(row)
        return tuple([entry for cells in telling for entry in cells.of_row(row)])

    def _in_arrays(self, state: CycleState, pod: PodRecord, rows: Int64s) -> list[tuple[int, int | None]]:
        totals: dict[int, int | None] = dict.fromkeys(rows.tolist())
        judged = self._judged(*self._rated(state, pod, rows))
        totals.update(zip(judged.rows.tolist(), judged.totals.tolist(), strict=True))
        return list(totals.items())

    def _rated(self, state: CycleState, pod: PodRecord, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Those of some rows that are feasible but for nominated pods, and what scores of scope ROW say of them."""
        outcome = self._runner.filter_rows_of(state, pod, rows, Scope.ROW)
        fitting = rows[(outcome.refused == 0) & (self._refused_nodes[rows] == 0)]
        return fitting, self._runner.scoring.sum_of(self._row_raters, state, pod)(fitting)

    def _judged(self, rows: Int64s, of_rows: Int64s) -> Judged:
        """The rows, with what those plugins score whose answers the pods on a row can change."""
        view = View(self._runner.cluster, rows)
        if min(of_rows.min(initial=0), self._nodes_total[rows].min(initial=0)) < 0:
            raise CannotRankError
        columns = [column for cells in self._cells for column in cells.columns(view)]
        return Judged(rows, self._nodes_total[rows] + of_rows, columns)

    def _by_row(self, state: CycleState, pod_class: PodClass) -> TotalOfRow | None:
        """The answer of all plugins for one row, as a function; None where some plugin has no such form."""
        filters: list[FitsRow] = []
        scores: list[tuple[ScoreRow, int]] = []
        for placed in self._runner.filters_of(state):
            if placed.scope is Scope.ROW:
                if placed.by_row is None:
                    return None
                filters.append(placed.by_row.row_filter(pod_class))
        for rater in self._row_raters:
            if rater.by_row is None:
                return None
            scores.append((rater.by_row.row_score(pod_class), rater.weight))
        return _total_of_row(self._refused_nodes.data, self._nodes_total.data, filters, scores)

    def _score_cells(self, rater: Rater, state: CycleState, pod: PodRecord) -> CellScore:
        if rater.scope is Scope.NODE and rater.ranged is not None:
            return KeptRaw(rater.ranged, self._runner.scoring.raw(rater, state, pod, View(self._runner.cluster)))
        cells = None if rater.cells is None else rater.cells.score_cells(pod)
        if cells is None:
            raise CannotRankError
        return cells


def _total_of_row(
    refused_nodes: memoryview, nodes_total: memoryview, filters: list[FitsRow], scores: list[tuple[ScoreRow, int]]
) -> TotalOfRow:
    """``refused_nodes`` and ``nodes_total`` are by row: what node objects say alone."""

    def total_of_row(pod: PodRecord, row: int) -> int | None:
        if refused_nodes[row]:
            return None
        for fits in filters:
            if not fits(pod, row):
                return None
        total = nodes_total[row]
        for score, weight in scores:
            total += weight * score(pod, row)
        return total

    return total_of_row


def _filter_cells(plugin: CellFilterPlugin | None, pod: PodRecord) -> CellFilter:
    cells = None if plugin is None else plugin.filter_cells(pod)
    if cells is None:
        raise CannotRankError
    return cells
