"""Rankings of the nodes for recently used pod classes.

The next pod of a class costs only what has changed since the last one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from podium.cluster.arrays import Int64s, lexsort
from podium.cluster.nodes import NameOrder
from podium.cluster.pods import PodRecord
from podium.framework.cache.class_cache import KeptByClass, as_many_as
from podium.framework.cache.row_filters import CannotRankError, RowJudge
from podium.framework.handle import CycleState
from podium.framework.plugin import NO_FIT, CellScorePlugin, ClassScorePlugin, is_own
from podium.framework.verdicts import PluginError

if TYPE_CHECKING:
    from podium.framework.runner import Runner

Key = tuple[int, ...]


class ClassOnRow:
    """The feasible nodes that plugins of scope CLUSTER do not distinguish, by total. ``top`` holds the best of them."""

    __slots__ = ("shelves", "size", "top")

    def __init__(self, shelf: Shelf) -> None:
        self.shelves = {shelf.total: shelf}
        self.top = shelf
        self.size = 0

    def drop(self, shelf: Shelf) -> None:
        """Remove an empty shelf that is not the last one."""
        del self.shelves[shelf.total]
        if self.top is shelf:
            self.top = self.shelves[max(self.shelves)]


class ClassRanking:
    """Nodes by cell, and within a cell by total."""

    def __init__(self, order: NameOrder, count: int) -> None:
        self._order = order
        self._rank_of = order.rank_of
        self._shelf_of: npt.NDArray[Any] = np.full(count, None, dtype=object)
        self.cells: dict[Key, ClassOnRow] = {}

    def fill(self, rows: Int64s, totals: Int64s, columns: Sequence[Int64s]) -> None:
        """Insert many rows into an empty ranking. All arrays are ``[n]``."""
        ranks = self._order.ranks[rows]
        by = lexsort(*columns, totals, ranks)
        rows, ranks, table = rows[by], ranks[by], [column[by] for column in (*columns, totals)]
        differs = np.zeros(max(len(rows) - 1, 0), dtype=np.bool_)
        for column in table:
            differs |= column[1:] != column[:-1]
        bounds = np.flatnonzero(differs) + 1
        for start, end in pairwise([0, *bounds.tolist(), len(rows)] if len(rows) else ()):
            *key, total = [column.item(start) for column in table]
            self._shelf_of[rows[start:end]] = self._open(tuple(key), total, ranks[start:end])

    def put(self, row: int, key: Key, total: int) -> None:
        """Put a row into a cell with a total."""
        shelf: Shelf | None = self._shelf_of[row]
        rank = self._rank_of[row]
        if shelf is not None:
            if shelf.total == total and shelf.cell == key:
                return
            self._take(shelf, rank)
        cell = self.cells.get(key)
        found = None if cell is None else cell.shelves.get(total)
        if cell is None or found is None:
            found = self._open(key, total, np.array([rank]))
        else:
            found.add(rank)
            cell.size += 1
        self._shelf_of[row] = found

    def remove(self, row: int) -> None:
        """Remove a row from its cell, if it is in one."""
        shelf: Shelf | None = self._shelf_of[row]
        if shelf is not None:
            self._shelf_of[row] = None
            self._take(shelf, self._rank_of[row])

    def _take(self, shelf: Shelf, rank: int) -> None:
        """Remove a row, by its rank, from its shelf."""
        shelf.remove(rank)
        cell = self.cells[shelf.cell]
        cell.size -= 1
        if not cell.size:
            del self.cells[shelf.cell]
        elif not shelf.size:
            cell.drop(shelf)

    def _open(self, key: Key, total: int, ranks: Int64s) -> Shelf:
        """Create a shelf with some nodes."""
        shelf = Shelf(self._order, key, total, ranks)
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = ClassOnRow(shelf)
        else:
            cell.shelves[total] = shelf
            if total > cell.top.total:
                cell.top = shelf
        cell.size += shelf.size
        return shelf


class Totals:
    """Non-negative totals in node order; infeasible nodes have none."""

    __slots__ = ("_entries", "_order", "_totals")

    def __init__(self, order: NameOrder) -> None:
        self._order = order
        self._totals: Int64s = np.full(len(order.rows), NO_FIT, dtype=np.int64)
        # The same memory, for access to single entries.
        self._entries = self._totals.data

    def write(self, rows: Int64s, feasible: Int64s, totals: Int64s) -> None:
        """Update some rows: the feasible ones among them with their totals."""
        ranks = self._order.ranks
        of_rows = ranks[rows]
        # Free rows have no rank.
        self._totals[of_rows[of_rows >= 0]] = NO_FIT
        self._totals[ranks[feasible]] = totals

    def put(self, rows: Sequence[int], totals: Sequence[int]) -> None:
        """Set the totals of rows with nodes; `NO_FIT` for infeasible ones."""
        entries, rank_of = self._entries, self._order.rank_of
        for row, total in zip(rows, totals, strict=True):
            entries[rank_of[row]] = total

    def best(self, lot: int) -> int | None:
        """Return the row at index ``lot``, modulo their number, among those with the highest total, in node order."""
        totals = self._totals
        highest = self._entries[totals.argmax()] if len(totals) else NO_FIT
        if highest == NO_FIT:
            return None
        places = (totals == highest).nonzero()[0]
        rank: int = places.item(lot % len(places))
        return self._order.rows[rank]

    def best_of(self, rows: Int64s, wanted: int, lot: int) -> tuple[int, int] | None:
        """Return the best of the first ``wanted`` feasible ones of ``rows``, as `best`, and how many were examined.

        The search ends at the next feasible row after them.
        """
        ranks = self._order.ranks[rows]
        totals = self._totals[ranks]
        feasible = (totals != NO_FIT).nonzero()[0]
        if not len(feasible):
            return None
        number: int = feasible.item(wanted) if len(feasible) > wanted else len(rows)
        totals = totals[:number]
        places = np.sort(ranks[:number][totals == totals.max()])
        return self._order.rows[places.item(lot % len(places))], number


RANKED_CLASSES = 16
"""A ranking takes 50 to 80 bytes a node: at 100,000 nodes, those of 16 classes take about 100 MiB."""
RANKED_ENTRIES = RANKED_CLASSES * 100_000
"""With few nodes more classes are ranked: as many as have this number of rows together."""
RANKED_PRIORITIES = 2
"""The number of priorities for which a class is ranked."""
MOST_CHANGES = 48
"""If more rows than this have changed since the class was last used, evaluating all nodes is cheaper."""
FEW_NODES = 8192
"""Up to this number of nodes, the totals of a class with one cell are scanned each time instead of ranked."""
FEW_CHANGES = 128
"""Up to this number of changed rows are then evaluated one by one; more are evaluated in arrays."""
MOST_CELLS = 64
WORTH_MAKING = 32
"""A ranking that has served this many decisions has saved what it cost to build."""
PATIENCE = 4
SHORT_PATIENCE = 1
"""For few nodes: totals are computed at once, since they cost no more than the evaluation that they replace."""
LONGEST_PATIENCE = 1024


@dataclass(slots=True, weakref_slot=True)
class RankingEntry:
    """The cached state of a class.

    Its ranking is built after ``patience`` decisions without one, since that is expensive.

    ``found_none``: no node fitted the last pod. The patience doubles when a ranking ends before it was worth its cost.
    """

    patience: int
    least: int
    waited: int = 0
    served: int = 0
    position: int = -1
    node_position: int = -1
    found_none: bool = False
    judge: RowJudge | None = None
    ranking: ClassRanking | Totals | None = None

    def drop(self) -> None:
        """Do without a ranking for a while."""
        if self.ranking is not None and self.served < WORTH_MAKING:
            self.patience = min(2 * self.patience, LONGEST_PATIENCE)
        elif self.ranking is not None:
            self.patience = max(self.patience // 2, self.least)
        self.judge = self.ranking = None
        self.waited = self.served = 0


class Rankings:
    """Finds the best feasible node without evaluating all nodes, if possible.

    It is possible if every plugin's answer depends on a row alone or on cells; if not all feasible nodes are scored, on
    a row alone. Nominated pods are considered if filters depend on rows alone and the pod itself is not nominated.
    Otherwise, and if no node fits, there is no answer.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._kept: KeptByClass[RankingEntry] = KeptByClass(
            as_many_as(RANKED_ENTRIES, runner.cluster.nodes, least=RANKED_CLASSES), RANKED_PRIORITIES
        )
        # Tests set it to 0 to build a ranking whenever there can be one.
        self.patience = PATIENCE
        self.few_nodes = FEW_NODES
        self.few_changes = FEW_CHANGES
        self._is_possible = (
            all(
                is_own(pre_score_plugin) and isinstance(pre_score_plugin, ClassScorePlugin | CellScorePlugin)
                for pre_score_plugin in runner.profile.pre_score
            )
            and not runner.scoring.unprepared
        )

    def best(self, state: CycleState, pod: PodRecord, lot: Callable[[], int]) -> int | None:
        """Return the row that `decide.placement` would choose among all; None if it is not known here.

        ``lot`` returns the pod's index among equals.
        """
        standing = self._ranked(state, pod)
        if standing is None or standing.judge is None or standing.ranking is None:
            return None
        return _best_row(standing.judge, standing.ranking, pod, lot())

    def best_of(
        self, state: CycleState, pod: PodRecord, lot: Callable[[], int], rows: Int64s, wanted: int
    ) -> tuple[int, int] | None:
        """Return the same among the first ``wanted`` feasible ones of ``rows``, and how many of them were examined."""
        standing = self._ranked(state, pod)
        totals = None if standing is None else standing.ranking
        return totals.best_of(rows, wanted, lot()) if isinstance(totals, Totals) else None

    def _ranked(self, state: CycleState, pod: PodRecord) -> RankingEntry | None:
        """Return the up-to-date ranking of a pod's class; None if there is none."""
        if not self._is_possible or not self._sees_nominations(state, pod):
            return None
        # The nominated pods that count depend on the priority.
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
            # It has missed changes.
            standing.drop()
            raise
        standing.served += 1
        return standing

    def learn(self, pod: PodRecord, *, fits: bool) -> None:
        """Record whether the pod fits any node, by the filters.

        While it fits none, the filters run for the next pod of its class in any case, to explain each node's rejection;
        a lookup here would be useless.
        """
        standing = self._kept.find(pod.pod_class, pod.priority)
        if standing is not None:
            standing.found_none = not fits

    def _sees_nominations(self, state: CycleState, pod: PodRecord) -> bool:
        nominations = self._runner.cluster.nominations
        if not nominations.uids:
            return True
        return not nominations.rules and pod.uid not in nominations and self._runner.is_row_local(state)

    def _standing(self) -> RankingEntry:
        return RankingEntry(self.patience, self.patience)

    def _is_current(self, standing: RankingEntry, state: CycleState, pod: PodRecord) -> bool:
        """Update a class's ranking, or build it if it is due; return whether there is one."""
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
        """Update totals."""
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

    def _make(self, standing: RankingEntry, state: CycleState, pod: PodRecord, missed: list[int] | None) -> bool:
        """Build the ranking or the totals of a class that has neither, if due."""
        nodes, is_sampling = self._runner.cluster.nodes, self._runner.profile.is_sampling
        are_few = nodes.count <= self.few_nodes or is_sampling
        if not are_few and (missed is None or len(missed) > MOST_CHANGES):
            standing.drop()
            return False
        standing.waited += 1
        is_early = standing.waited <= (min(standing.patience, SHORT_PATIENCE) if are_few else standing.patience)
        if is_early and not are_few:
            return False
        judge = RowJudge(self._runner, state, pod)
        is_plain = are_few and judge.has_one_cell()
        if is_sampling and not is_plain:
            raise CannotRankError
        if is_early and not is_plain:
            return False
        rated = judge.all_rows(state, pod)
        ranking: ClassRanking | Totals
        if is_plain:
            ranking = Totals(nodes.name_order())
            ranking.write(nodes.all_rows(), rated.rows, rated.totals)
        else:
            ranking = ClassRanking(nodes.name_order(), nodes.count)
            ranking.fill(*rated)
            if len(ranking.cells) > MOST_CELLS:
                raise CannotRankError
        standing.judge, standing.ranking = judge, ranking
        standing.node_position = nodes.node_changes.position
        return True


def _move(ranking: ClassRanking, judge: RowJudge, rows: list[int], totals: list[int]) -> None:
    """Move some rows to where their totals place them."""
    for row, total in zip(rows, totals, strict=True):
        if total < 0:
            ranking.remove(row)
        else:
            ranking.put(row, judge.key(row), total)
    if len(ranking.cells) > MOST_CELLS:
        raise CannotRankError


def _best_row(judge: RowJudge, ranking: ClassRanking | Totals, pod: PodRecord, lot: int) -> int | None:
    """Return the row with the highest total, of several the one at index ``lot``; None if no row fits."""
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


def _fitting(judge: RowJudge, ranking: ClassRanking, pod: PodRecord) -> tuple[list[ClassOnRow], list[int]]:
    """Return the cells that no filter rejects, and a row of each."""
    cells = list(ranking.cells.values())
    rows = [cell.top.first() for cell in cells]
    for cell_filter in judge.filters:
        if cells:
            fits = cell_filter.fits(pod, rows)
            left = [(cell, row) for cell, row, fit in zip(cells, rows, fits, strict=True) if fit]
            cells, rows = [cell for cell, _ in left], [row for _, row in left]
    return cells, rows


def _best(judge: RowJudge, cells: list[ClassOnRow], rows: list[int], pod: PodRecord) -> list[Shelf]:
    """Return the shelves with the highest total overall, given cells and a row of each."""
    sizes = [cell.size for cell in cells]
    totals = [cell.top.total for cell in cells]
    for one, weight in judge.scores:
        totals = [total + weight * score for total, score in zip(totals, one.score(pod, rows, sizes), strict=True)]
    highest = max(totals)
    return [cell.top for cell, total in zip(cells, totals, strict=True) if total == highest]


_RUN_BITS = 3
_RUN = 1 << _RUN_BITS


class Shelf:
    """Nodes of one total, by their ranks in a `NameOrder`; ``total`` and ``cell`` are its position in a ranking.

    ``ranks`` ascend. Until the first draw it is an unordered heap. Afterwards its ranks are in sorted blocks. Counts
    are kept for each block and for runs of blocks, so that a search by position skips runs first.
    """

    __slots__ = ("_blocks", "_counts", "_order", "_pile", "_runs", "_untouched", "cell", "size", "total")

    def __init__(self, order: NameOrder, cell: tuple[int, ...], total: int, ranks: Int64s) -> None:
        self._order = order
        # The ranks are in one of these: as given, in a heap, or in blocks.
        self._untouched: Int64s | None = ranks
        self._pile: set[int] | None = None
        # Arrays rather than lists, since adjacent numbers are found in half the time.
        self._blocks: list[array[int]] = []
        self._counts: list[int] = []
        self._runs: list[int] = []
        self.cell = cell
        self.total = total
        self.size = len(ranks)

    def add(self, rank: int) -> None:
        """Add a node that is not on the shelf."""
        self.size += 1
        blocks = self._blocks
        if not blocks:
            self._on_pile().add(rank)
            return
        number = rank >> self._order.shift
        insort(blocks[number], rank)
        self._counts[number] += 1
        self._runs[number >> _RUN_BITS] += 1

    def remove(self, rank: int) -> None:
        """Remove a node. Raises LookupError if it is not on the shelf."""
        blocks = self._blocks
        if blocks:
            number = rank >> self._order.shift
            block = blocks[number]
            at = bisect_left(block, rank)
            if block[at] != rank:
                raise KeyError(rank)
            del block[at]
            self._counts[number] -= 1
            self._runs[number >> _RUN_BITS] -= 1
        else:
            self._on_pile().remove(rank)
        self.size -= 1

    def blocks(self) -> tuple[list[array[int]], list[int]]:
        """Return the ranks in sorted blocks, and the size of each."""
        if not self._blocks:
            ranks = self._untouched
            if ranks is None:
                ranks = np.array(sorted(self._pile or ()), dtype=np.int64)
            ends = np.searchsorted(ranks, np.arange(self._order.blocks + 1) << self._order.shift).tolist()
            self._blocks = [array("q", ranks[start:end].tobytes()) for start, end in pairwise(ends)]
            self._counts = [len(block) for block in self._blocks]
            self._runs = [sum(self._counts[start : start + _RUN]) for start in range(0, len(self._counts), _RUN)]
            self._untouched = self._pile = None
        return self._blocks, self._counts

    def nth(self, place: int) -> int:
        """Return the row of the node at an index, counted from 0, in node order."""
        blocks = self._blocks or self.blocks()[0]
        number = 0
        for count in self._runs:
            if place < count:
                break
            place -= count
            number += _RUN
        for block in blocks[number : number + _RUN]:
            if place < len(block):
                return self._order.rows[block[place]]
            place -= len(block)
        raise IndexError("there are fewer nodes on the shelf")

    def _on_pile(self) -> set[int]:
        """Return the ranks, unordered, while they are not in blocks."""
        if self._pile is None:
            self._pile = set() if self._untouched is None else set(self._untouched.tolist())
            self._untouched = None
        return self._pile

    def first(self) -> int:
        """Return the row of the first node; the shelf must not be empty."""
        for block in self.blocks()[0]:
            if block:
                return self._order.rows[block[0]]
        raise IndexError("there is no node on the shelf")


def nth(shelves: Sequence[Shelf], place: int) -> int:
    """Return the row of the node at an index, counted from 0, in the node order of several shelves of one ranking."""
    if len(shelves) == 1:
        return shelves[0].nth(place)
    laid_out = [shelf.blocks() for shelf in shelves]
    for number, lengths in enumerate(zip(*(counts for _, counts in laid_out), strict=True)):
        count = sum(lengths)
        if place < count:
            return shelves[0]._order.rows[sorted(chain(*[blocks[number].tolist() for blocks, _ in laid_out]))[place]]
        place -= count
    raise IndexError("there are fewer nodes on the shelves")
