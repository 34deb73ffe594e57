"""Rankings of the pod classes used last: the next pod of a class costs what has changed since the last one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from podium.cluster.pods import PodRecord
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.kept.class_cache import KeptByClass, as_many_as
from podium.framework.kept.ranking import Cell, Ranking
from podium.framework.kept.row_judge import CannotRankError, RowJudge
from podium.framework.kept.shelf import Shelf, nth
from podium.framework.kept.totals import Totals
from podium.framework.plugin import CellScorePlugin, ClassScorePlugin, is_own

if TYPE_CHECKING:
    from podium.framework.runner import Runner

RANKED_CLASSES = 16
"""A ranking takes 50 to 80 bytes a node: at 100,000 nodes, those of 16 classes take about 100 MiB."""
RANKED_ENTRIES = RANKED_CLASSES * 100_000
"""Where nodes are few, more classes are ranked: as many as have so many rows together."""
RANKED_PRIORITIES = 2
"""Of so many priorities of a class."""
MOST_CHANGES = 48
"""If more rows than these have changed since a class was asked about, looking at all nodes costs less."""
FEW_NODES = 8192
"""Up to how many nodes the totals of a class of one cell are kept, to be looked at each time, and not a ranking."""
FEW_CHANGES = 128
"""Up to how many changed rows are asked about one by one then; more are asked about at once, in arrays."""
MOST_CELLS = 64
WORTH_MAKING = 32
"""A ranking that has served for so many decisions has saved what it cost to make."""
PATIENCE = 4
SHORT_PATIENCE = 1
"""Where nodes are few. Totals are made at once: they cost no more than the look at all nodes that they stand for."""
LONGEST_PATIENCE = 1024


@dataclass(slots=True, weakref_slot=True)
class _Standing:
    """What is kept of a class. Its ranking is made after ``patience`` decisions without one, since that costs some.

    ``found_none``: no node fitted the last pod. The patience doubles when a ranking ends before it was worth making.
    """

    patience: int
    least: int
    waited: int = 0
    served: int = 0
    position: int = -1
    node_position: int = -1
    found_none: bool = False
    judge: RowJudge | None = None
    ranking: Ranking | Totals | None = None

    def drop(self) -> None:
        """Do without a ranking for a while."""
        if self.ranking is not None and self.served < WORTH_MAKING:
            self.patience = min(2 * self.patience, LONGEST_PATIENCE)
        elif self.ranking is not None:
            self.patience = max(self.patience // 2, self.least)
        self.judge = self.ranking = None
        self.waited = self.served = 0


class Rankings:
    """Finds the best node of those that a pod fits without looking at all of them, where that is possible.

    It is where every plugin's answers hang on a row alone or on cells, and all nodes that fit are rated. Nominated pods
    are seen where filters look at rows alone, by pods that are not nominated themselves. Otherwise, and where no node
    fits, `best` has no answer.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._kept: KeptByClass[_Standing] = KeptByClass(
            as_many_as(RANKED_ENTRIES, runner.cluster.nodes, least=RANKED_CLASSES), RANKED_PRIORITIES
        )
        # 0, for tests, makes a ranking whenever there can be one.
        self.patience = PATIENCE
        self.few_nodes = FEW_NODES
        self.few_changes = FEW_CHANGES
        percentage = runner.profile.percentage_of_nodes_to_score
        self._is_possible = (
            (percentage is None or percentage >= 100)
            and all(
                is_own(pre_score_plugin) and isinstance(pre_score_plugin, ClassScorePlugin | CellScorePlugin)
                for pre_score_plugin in runner.profile.pre_score
            )
            and not runner.scoring.unprepared
        )

    def best(self, state: CycleState, pod: PodRecord, lot: Callable[[], int]) -> int | None:
        """The row that `decide.placement` would come to; None where that is not known here.

        ``lot`` is asked for what the pod draws among equals once there are some to draw from.
        """
        if not self._is_possible or not self._sees_nominations(state, pod):
            return None
        # Which nominated pods count depends on the priority.
        standing = self._kept.get(pod.pod_class, pod.priority, self._standing)
        if standing.found_none:
            return None
        try:
            if not self._is_current(standing, state, pod) or standing.judge is None or standing.ranking is None:
                return None
        except CannotRankError:
            standing.patience = LONGEST_PATIENCE if self.patience else 0
            standing.drop()
            return None
        except PluginError:
            # It does not know of all changes.
            standing.drop()
            raise
        standing.served += 1
        return _best_row(standing.judge, standing.ranking, pod, lot())

    def learn(self, pod: PodRecord, *, fits: bool) -> None:
        """Whether the pod fits some node, as the filters say.

        While it does not, they are asked about the next one of its class in any case, for why each node refuses it: so
        that there is no use for looking here first.
        """
        standing = self._kept.find(pod.pod_class, pod.priority)
        if standing is not None:
            standing.found_none = not fits

    def _sees_nominations(self, state: CycleState, pod: PodRecord) -> bool:
        nominations = self._runner.cluster.nominations
        return not nominations.uids or (pod.uid not in nominations and self._runner.is_row_local(state))

    def _standing(self) -> _Standing:
        return _Standing(self.patience, self.patience)

    def _is_current(self, standing: _Standing, state: CycleState, pod: PodRecord) -> bool:
        """Bring a class's ranking up to date, or make it if it is time for that."""
        nodes, judge, ranking = self._runner.cluster.nodes, standing.judge, standing.ranking
        missed = nodes.placement_changes.entries_since(standing.position)
        standing.position = nodes.placement_changes.position
        if judge is None or ranking is None:
            return self._make(standing, state, pod, missed)
        is_right = standing.node_position == nodes.node_changes.position and judge.is_current(state, pod)
        if isinstance(ranking, Totals):
            if is_right:
                self._write(ranking, judge, state, pod, missed)
        elif missed is None or len(missed) > MOST_CHANGES:
            is_right = False
        elif is_right and missed:
            rows = missed if len(missed) == 1 else sorted(set(missed))
            _move(ranking, judge, rows, judge.some_rows(state, pod, rows))
        if not is_right:
            standing.drop()
        return is_right

    def _write(
        self, totals: Totals, judge: RowJudge, state: CycleState, pod: PodRecord, missed: list[int] | None
    ) -> None:
        """Bring totals up to date."""
        rows = missed if missed is None or len(missed) < 2 else sorted(set(missed))
        if rows is not None and len(rows) <= self.few_changes:
            totals.put(rows, judge.some_rows(state, pod, rows))
            return
        nodes = self._runner.cluster.nodes
        if rows is None or len(rows) > nodes.count // 4:
            totals.write(nodes.all_rows(), *judge.all_rows(state, pod)[:2])
        else:
            some = np.array(rows, dtype=np.int64)
            totals.write(some, *judge.rows_at_once(state, pod, some)[:2])

    def _make(self, standing: _Standing, state: CycleState, pod: PodRecord, missed: list[int] | None) -> bool:
        """Make a ranking for a class that has none, or totals, if it is time for that."""
        nodes = self._runner.cluster.nodes
        are_few = nodes.count <= self.few_nodes
        if not are_few and (missed is None or len(missed) > MOST_CHANGES):
            standing.drop()
            return False
        standing.waited += 1
        is_early = standing.waited <= (min(standing.patience, SHORT_PATIENCE) if are_few else standing.patience)
        if is_early and not are_few:
            return False
        judge = RowJudge(self._runner, state, pod)
        is_plain = are_few and judge.has_one_cell()
        if is_early and not is_plain:
            return False
        rated = judge.all_rows(state, pod)
        ranking: Ranking | Totals
        if is_plain:
            ranking = Totals(nodes.name_order())
            ranking.write(nodes.all_rows(), rated.rows, rated.totals)
        else:
            ranking = Ranking(nodes.name_order(), nodes.count)
            ranking.fill(*rated)
            if len(ranking.cells) > MOST_CELLS:
                raise CannotRankError
        standing.judge, standing.ranking = judge, ranking
        standing.node_position = nodes.node_changes.position
        return True


def _move(ranking: Ranking, judge: RowJudge, rows: list[int], totals: list[int]) -> None:
    """Let some rows be where their totals say."""
    for row, total in zip(rows, totals, strict=True):
        if total < 0:
            ranking.remove(row)
        else:
            ranking.put(row, judge.key(row), total)
    if len(ranking.cells) > MOST_CELLS:
        raise CannotRankError


def _best_row(judge: RowJudge, ranking: Ranking | Totals, pod: PodRecord, lot: int) -> int | None:
    """The row that has the highest total, or of several the one that the lot draws; None where no row fits."""
    if isinstance(ranking, Totals):
        return ranking.best(lot)
    if len(ranking.cells) == 1 and not judge.filters:
        (cell,) = ranking.cells.values()
        return cell.top.nth(lot % cell.top.size)
    cells, rows = _fitting(judge, ranking, pod)
    if not cells:
        return None
    shelves = [cells[0].top] if len(cells) == 1 else _best(judge, cells, rows, pod)
    return nth(shelves, lot % sum([shelf.size for shelf in shelves]))


def _fitting(judge: RowJudge, ranking: Ranking, pod: PodRecord) -> tuple[list[Cell], list[int]]:
    """The cells that no filter refuses, and a row of each."""
    cells = list(ranking.cells.values())
    rows = [cell.top.first() for cell in cells]
    for cell_filter in judge.filters:
        if cells:
            fits = cell_filter.fits(pod, rows)
            left = [(cell, row) for cell, row, fit in zip(cells, rows, fits, strict=True) if fit]
            cells, rows = [cell for cell, _ in left], [row for _, row in left]
    return cells, rows


def _best(judge: RowJudge, cells: list[Cell], rows: list[int], pod: PodRecord) -> list[Shelf]:
    """The shelves with the highest total of all, by cells and a row of each."""
    sizes = [cell.size for cell in cells]
    totals = [cell.top.total for cell in cells]
    for one, weight in judge.scores:
        totals = [total + weight * score for total, score in zip(totals, one.score(pod, rows, sizes), strict=True)]
    highest = max(totals)
    return [cell.top for cell, total in zip(cells, totals, strict=True) if total == highest]
