"""What the plugins of a profile say of single rows to the pods of a class: whether they fit, and the total.

What only a node object can change is looked up; what is asked again is asked about one row, without arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.kept.cells import CellFilter, Cells, CellScore, OneCell
from podium.framework.kept.row_total import total_of_row
from podium.framework.plugin import (
    NO_FIT,
    CellFilterPlugin,
    RangeNormalizePlugin,
    Scope,
    TotalOfRow,
)
from podium.framework.scoring import Rater

if TYPE_CHECKING:
    from podium.framework.runner import Runner


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
        scores = [(self._score_cells(rater, state, pod), rater.weight) for rater in raters if not rater.kept]
        each: list[Cells] = [*self.filters, *(cells for cells, _ in scores)]
        self._conditions = [cells.is_current for cells in each if not isinstance(cells, KeptRaw)]
        # Those that may tell rows apart. Others give all rows the same, which changes no choice among these.
        self.scores = [(cells, weight) for cells, weight in scores if self._tells(cells)]
        self._telling: list[Cells] = [*self.filters, *(cells for cells, _ in self.scores)]
        # By row, what node objects say alone: the scores, or that the pod does not fit.
        self._of_nodes = self._said_of_nodes(node_raters, state, pod)
        self._renewals = runner.cluster.nodes.entries.renewals
        self._total_of_row = self._by_row(state, pod.pod_class)

    def has_one_cell(self) -> bool:
        """Whether all nodes are one cell, for as long as this is right."""
        return not self._telling

    def _tells(self, cells: CellScore) -> bool:
        """Whether some nodes may be another cell than others."""
        nodes = self._runner.cluster.nodes
        if isinstance(cells, KeptRaw):
            return not cells.is_one_of(nodes.present[: nodes.count])
        return not isinstance(cells, OneCell) and bool(cells.columns(View(self._runner.cluster, nodes.all_rows()[:0])))

    def is_current(self, state: CycleState, pod: PodRecord) -> bool:
        """Whether the same plugins have something to say, and tell rows apart as they did."""
        if state.skip_filter is not self._skipped and state.skip_filter != self._skipped:
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

    def some_rows(self, state: CycleState, pod: PodRecord, rows: Sequence[int]) -> list[int]:
        """The totals of some rows, ascending; `NO_FIT` where the pod does not fit."""
        entries = self._runner.cluster.nodes.entries
        if self._renewals != entries.renewals:
            self._renewals, self._total_of_row = entries.renewals, self._by_row(state, pod.pod_class)
        total_of_row = self._total_of_row
        if total_of_row is None:
            totals = self._in_arrays(state, pod, np.array(rows, dtype=np.int64))
        else:
            totals = [total_of_row(pod, row) for row in rows]
        if self._runner.cluster.nominations.uids:
            fitting = np.array([row for row, total in zip(rows, totals, strict=True) if total >= 0], dtype=np.int64)
            refused = set(self._runner.refused_beside(state, pod, fitting).tolist())
            totals = [NO_FIT if row in refused else total for row, total in zip(rows, totals, strict=True)]
        return totals

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

    def _in_arrays(self, state: CycleState, pod: PodRecord, rows: Int64s) -> list[int]:
        totals = dict.fromkeys(rows.tolist(), NO_FIT)
        judged = self._judged(*self._rated(state, pod, rows))
        totals.update(zip(judged.rows.tolist(), judged.totals.tolist(), strict=True))
        return list(totals.values())

    def _rated(self, state: CycleState, pod: PodRecord, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Those of some rows that are feasible but for nominated pods, and what scores of scope ROW say of them."""
        outcome = self._runner.filter_rows_of(state, pod, rows, Scope.ROW)
        fitting = rows[(outcome.refused == 0) & (self._of_nodes[rows] >= 0)]
        return fitting, self._runner.scoring.sum_of(self._row_raters, state, pod)(fitting)

    def _judged(self, rows: Int64s, of_rows: Int64s) -> Judged:
        """The rows, with what those plugins score whose answers the pods on a row can change."""
        view = View(self._runner.cluster, rows)
        if of_rows.min(initial=0) < 0:
            raise CannotRankError
        columns = [column for cells in self._telling for column in cells.columns(view)]
        return Judged(rows, self._of_nodes[rows] + of_rows, columns)

    def _said_of_nodes(self, raters: list[Rater], state: CycleState, pod: PodRecord) -> Int64s:
        """``[rows]``: what raters of scope NODE score, `NO_FIT` where a filter of that scope refuses the pod."""
        refused = self._runner.kept.refusals(state, pod)[0].values
        scores = self._runner.scoring.kept_sum(raters, Scope.NODE, state, pod)
        if scores.min(where=refused == 0, initial=0) < 0:
            raise CannotRankError
        return np.where(refused == 0, scores, NO_FIT)

    def _by_row(self, state: CycleState, pod_class: PodClass) -> TotalOfRow | None:
        """The answer of all plugins for one row, as a function; None where some plugin has no such form."""
        placed = [placed for placed in self._runner.filters_of(state) if placed.scope is Scope.ROW]
        filters = [filter_.by_row for filter_ in placed if filter_.by_row is not None]
        scores = [(rater.by_row, rater.weight) for rater in self._row_raters if rater.by_row is not None]
        if len(filters) < len(placed) or len(scores) < len(self._row_raters):
            return None
        first = placed[0].joining if placed else None
        joined = None if first is None else first.join(pod_class, scores, self._of_nodes.data)
        if joined is not None:
            filters = filters[1:]
        together, rest = joined or (None, scores)
        return total_of_row(
            self._of_nodes.data,
            [plugin.row_filter(pod_class) for plugin in filters],
            [(plugin.row_score(pod_class), weight) for plugin, weight in rest],
            together,
        )

    def _score_cells(self, rater: Rater, state: CycleState, pod: PodRecord) -> CellScore:
        if rater.scope is Scope.NODE and rater.ranged is not None:
            return KeptRaw(rater.ranged, self._runner.scoring.raw(rater, state, pod, View(self._runner.cluster)))
        cells = None if rater.cells is None else rater.cells.score_cells(pod)
        if cells is None:
            raise CannotRankError
        return cells


def _filter_cells(plugin: CellFilterPlugin | None, pod: PodRecord) -> CellFilter:
    cells = None if plugin is None else plugin.filter_cells(pod)
    if cells is None:
        raise CannotRankError
    return cells
