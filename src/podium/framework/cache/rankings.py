"""Rankings of the nodes for recently used pod classes.

The next pod of a class costs only what has changed since the last one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from podium.cluster.arrays import Int64s, lexsort, runs
from podium.cluster.nodes import NameOrder
from podium.cluster.pods import PodRecord
from podium.framework.cache import class_cache
from podium.framework.cache.class_cache import CacheByClass, as_many_as
from podium.framework.cache.row_filters import NO_FIT, CannotRankError, RowEvaluator
from podium.framework.handle import CycleState
from podium.framework.plugin import CellScorePlugin, ClassScorePlugin, is_own
from podium.framework.verdicts import PluginError

if TYPE_CHECKING:
    from podium.framework.runner import Runner

Key = tuple[int, ...]


_BLOCK_BITS = 12


class ScoreBucket:
    """Nodes of one total in a cell: their ranks in a `NameOrder`, ascending."""

    def __init__(self, cell: Key, total: int, ranks: Int64s, most: int) -> None:
        """``most`` is the number of all ranks."""
        self.cell = cell
        self.total = total
        self.size = len(ranks)
        self._ranks = ranks
        self._most = most

    @cached_property
    def blocks(self) -> list[array[int]]:
        """The ranks in blocks, so that few move at a time; made on first use, since most buckets are never used."""
        ends = np.searchsorted(self._ranks, np.arange((self._most >> _BLOCK_BITS) + 2) << _BLOCK_BITS).tolist()
        return [array("q", self._ranks[start:end].tobytes()) for start, end in pairwise(ends)]

    def add(self, rank: int) -> None:
        """Add a node that is not in it."""
        insort(self.blocks[rank >> _BLOCK_BITS], rank)
        self.size += 1

    def remove(self, rank: int) -> None:
        """Remove a node. Raises LookupError if it is not in it."""
        block = self.blocks[rank >> _BLOCK_BITS]
        at = bisect_left(block, rank)
        if block[at] != rank:
            raise KeyError(rank)
        del block[at]
        self.size -= 1


class RankedCell:
    """The feasible nodes that plugins of scope CLUSTER do not distinguish, by total. ``top`` holds the best of them."""

    __slots__ = ("buckets", "size", "top")

    def __init__(self, bucket: ScoreBucket) -> None:
        self.buckets = {bucket.total: bucket}
        self.top = bucket
        self.size = 0

    def drop(self, bucket: ScoreBucket) -> None:
        """Remove an empty bucket that is not the last one."""
        del self.buckets[bucket.total]
        if self.top is bucket:
            self.top = self.buckets[max(self.buckets)]


class ClassRanking:
    """Nodes by cell, and within a cell by total."""

    def __init__(self, order: NameOrder, count: int) -> None:
        self._order = order
        self._rank_of = order.rank_of
        self._bucket_of: npt.NDArray[Any] = np.full(count, None, dtype=object)
        self.cells: dict[Key, RankedCell] = {}

    def nth(self, buckets: Sequence[ScoreBucket], place: int) -> int:
        """Return the row of the node at an index, counted from 0, in the node order of some buckets together.

        Raises IndexError if there are fewer nodes.
        """
        for blocks in zip(*[bucket.blocks for bucket in buckets], strict=True):
            count = sum(map(len, blocks))
            if place < count:
                ranks = blocks[0] if len(blocks) == 1 else np.partition(np.concatenate(blocks), place)
                rank: int = ranks[place]
                return self._order.rows[rank]
            place -= count
        raise IndexError("there are fewer nodes in the buckets")

    def fill(self, rows: Int64s, totals: Int64s, columns: Sequence[Int64s]) -> None:
        """Insert many rows into an empty ranking. All arrays are ``[n]``."""
        ranks = self._order.ranks[rows]
        by = lexsort(*columns, totals, ranks)
        rows, ranks, table = rows[by], ranks[by], [column[by] for column in (*columns, totals)]
        bounds = runs(*table)
        keys = zip(*[column[bounds[:-1]].tolist() for column in table], strict=True)
        buckets = [
            self._open(tuple(key), total, ranks[start:end])
            for (*key, total), (start, end) in zip(keys, pairwise(bounds.tolist()), strict=True)
        ]
        self._bucket_of[rows] = np.repeat(np.array(buckets, dtype=object), np.diff(bounds))

    def put(self, row: int, key: Key, total: int) -> None:
        bucket: ScoreBucket | None = self._bucket_of[row]
        rank = self._rank_of[row]
        if bucket is not None:
            if bucket.total == total and bucket.cell == key:
                return
            self._take(bucket, rank)
        cell = self.cells.get(key)
        found = None if cell is None else cell.buckets.get(total)
        if cell is None or found is None:
            found = self._open(key, total, np.array([rank]))
        else:
            found.add(rank)
            cell.size += 1
        self._bucket_of[row] = found

    def remove(self, row: int) -> None:
        """Remove a row from its cell, if it is in one."""
        bucket: ScoreBucket | None = self._bucket_of[row]
        if bucket is not None:
            self._bucket_of[row] = None
            self._take(bucket, self._rank_of[row])

    def _take(self, bucket: ScoreBucket, rank: int) -> None:
        """Remove a row, by its rank, from its bucket."""
        bucket.remove(rank)
        cell = self.cells[bucket.cell]
        cell.size -= 1
        if not cell.size:
            del self.cells[bucket.cell]
        elif not bucket.size:
            cell.drop(bucket)

    def _open(self, key: Key, total: int, ranks: Int64s) -> ScoreBucket:
        """Create a bucket with some nodes."""
        bucket = ScoreBucket(key, total, ranks, len(self._order.rows))
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = RankedCell(bucket)
        else:
            cell.buckets[total] = bucket
            if total > cell.top.total:
                cell.top = bucket
        cell.size += bucket.size
        return bucket


class Totals:
    """Non-negative totals in node order; infeasible nodes have none."""

    __slots__ = ("_entries", "_highest", "_order", "_top", "_totals")

    def __init__(self, order: NameOrder) -> None:
        self._order = order
        self._totals: Int64s = np.full(len(order.rows), NO_FIT, dtype=np.int64)
        # The same memory, for access to single entries.
        self._entries = self._totals.data
        # The ranks with the highest total, ascending, so that not all totals are compared for each pod; empty: unknown.
        self._top = array("q")
        self._highest = NO_FIT

    def write(self, feasible: Int64s, totals: Int64s) -> None:
        """Set the totals of all feasible rows."""
        self._totals.fill(NO_FIT)
        self._totals[self._order.ranks[feasible]] = totals
        self._top = array("q")

    def put(self, rows: Sequence[int], totals: Sequence[int]) -> None:
        """Set the totals of rows with nodes; `NO_FIT` for infeasible ones."""
        entries, rank_of = self._entries, self._order.rank_of
        for row, total in zip(rows, totals, strict=True):
            rank = rank_of[row]
            before, entries[rank] = entries[rank], total
            if before == total or not self._top:
                continue
            if total > self._highest:
                self._highest, self._top = total, array("q", [rank])
            elif total == self._highest:
                insort(self._top, rank)
            elif before == self._highest:
                del self._top[bisect_left(self._top, rank)]

    def best(self, lot: int) -> int | None:
        """Return the row at index ``lot``, modulo their number, among those with the highest total, in node order."""
        if not self._top or class_cache.VERIFIES:
            known, totals = self._top, self._totals
            self._highest = self._entries[totals.argmax()] if len(totals) else NO_FIT
            if self._highest == NO_FIT:
                return None
            self._top = array("q", (totals == self._highest).nonzero()[0].tobytes())
            class_cache.verify(np.array(known or self._top), np.array(self._top))
        return self._order.rows[self._top[lot % len(self._top)]]

    def best_of(self, rows: Int64s, wanted: int, lot: int, preferred: int | None) -> tuple[int, int] | None:
        """Return the best of the first ``wanted`` feasible ones of ``rows``, as `best`, and how many were examined.

        The search ends at the next feasible row after them. A ``preferred`` row comes first if some search would find
        none that is better.
        """
        ranks = self._order.ranks[rows]
        totals = self._totals[ranks]
        feasible = (totals != NO_FIT).nonzero()[0]
        if not len(feasible):
            return None
        number: int = feasible.item(wanted) if len(feasible) > wanted else len(rows)
        if preferred is not None and is_best_of_some(rows[feasible], totals[feasible], preferred, wanted):
            return preferred, number
        totals = totals[:number]
        places = np.sort(ranks[:number][totals == totals.max()])
        return self._order.rows[places.item(lot % len(places))], number


def is_best_of_some(rows: Int64s, totals: Int64s, row: int, wanted: int) -> bool:
    """Return whether some search among feasible rows finds a certain row, and none with a higher total.

    Searches go round ``rows`` from any place on, and end when they have found ``wanted`` of them.
    """
    at = (rows == row).nonzero()[0]
    if not len(at):
        return False
    better = (totals > totals[at]).nonzero()[0]
    # Between two better rows it is the best.
    after = np.searchsorted(better, at).item()
    found = (better[after % len(better)] - better[after - 1] - 1) % len(rows) if len(better) else len(rows)
    return bool(found >= min(wanted, len(rows)))


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
"""Up to this number of changed rows are then evaluated one by one; if more have changed, all are, in arrays."""
MOST_CELLS = 64
RETRY_AFTER = 1024
"""The number of decisions after which a ranking is tried again for a class that could have none."""


@dataclass(slots=True, weakref_slot=True)
class RankingEntry:
    """The cached state of a class, as of positions in the logs of placements and of nodes.

    ``found_none``: no node fitted the last pod. For ``waits`` more decisions no ranking is tried.
    """

    waits: int = 0
    position: int = -1
    node_position: int = -1
    found_none: bool = False
    evaluator: RowEvaluator | None = None
    ranking: ClassRanking | Totals | None = None

    def drop(self) -> None:
        self.evaluator = self.ranking = None


class Rankings:
    """Finds the best feasible node without evaluating all nodes, if possible.

    It is possible if every plugin's answer depends on a row alone or on cells; if not all feasible nodes are scored, on
    a row alone. Nominated pods are considered if filters depend on rows alone and the pod itself is not nominated.
    Otherwise, and if no node fits, there is no answer.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._kept: CacheByClass[RankingEntry] = CacheByClass(
            as_many_as(RANKED_ENTRIES, runner.cluster.nodes, least=RANKED_CLASSES), RANKED_PRIORITIES
        )
        self.is_eager = False
        """Whether a class is ranked for its first pod already, which pays if more of them follow."""
        # Tests set these.
        self.retry_after = RETRY_AFTER
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
        entry = self._ranked(state, pod)
        if entry is None or entry.evaluator is None or entry.ranking is None:
            return None
        return _best_row(entry.evaluator, entry.ranking, pod, lot())

    def totals(self, state: CycleState, pod: PodRecord) -> Totals | None:
        """Return the up-to-date totals of a pod's class; None if there are none."""
        entry = self._ranked(state, pod)
        return entry.ranking if entry is not None and isinstance(entry.ranking, Totals) else None

    def _ranked(self, state: CycleState, pod: PodRecord) -> RankingEntry | None:
        """Return the up-to-date ranking of a pod's class; None if there is none."""
        if not self._is_possible:
            return None
        # The nominated pods that count depend on the priority.
        entry = self._kept.get(pod.pod_class, pod.priority, RankingEntry)
        if entry.found_none:
            return None
        nominations = self._runner.cluster.nominations
        counts_alike = not nominations.rules and pod.uid not in nominations.uids
        if nominations.uids and not (counts_alike and self._runner.is_row_local(state)):
            return None
        try:
            if not self._is_current(entry, state, pod) or entry.evaluator is None or entry.ranking is None:
                return None
        except CannotRankError:
            entry.waits = self.retry_after
            entry.drop()
            return None
        except PluginError:
            # It has missed changes.
            entry.drop()
            raise
        return entry

    def learn(self, pod: PodRecord, *, fits: bool) -> None:
        """Record whether the pod fits any node, by the filters.

        While it fits none, the filters run for the next pod of its class in any case, to explain each node's rejection;
        a lookup here would be useless.
        """
        entry = self._kept.find(pod.pod_class, pod.priority)
        if entry is not None:
            entry.found_none = not fits

    def _is_current(self, entry: RankingEntry, state: CycleState, pod: PodRecord) -> bool:
        """Update a class's ranking, or build it if it is due; return whether there is one."""
        nodes, evaluator, ranking = self._runner.cluster.nodes, entry.evaluator, entry.ranking
        missed = nodes.changes.visible_since(entry.position)
        entry.position = nodes.changes.position
        if evaluator is None:
            return self._make(entry, state, pod, missed)
        if entry.node_position != nodes.node_changes.position or not evaluator.is_current(state, pod):
            entry.drop()
            return False
        if isinstance(ranking, Totals):
            self._write(ranking, evaluator, state, pod, missed)
        elif ranking is None or missed is None or len(missed) > MOST_CHANGES:
            entry.ranking = None
            return self._make(entry, state, pod, missed)
        elif missed:
            rows = missed if len(missed) == 1 else sorted(set(missed))
            _move(ranking, evaluator, rows, evaluator.some_rows(state, pod, rows))
        return True

    def _write(
        self, totals: Totals, evaluator: RowEvaluator, state: CycleState, pod: PodRecord, missed: list[int] | None
    ) -> None:
        rows = missed if missed is None or len(missed) < 2 else sorted(set(missed))
        if rows is not None and len(rows) <= self.few_changes:
            totals.put(rows, evaluator.some_rows(state, pod, rows))
        else:
            totals.write(*evaluator.all_rows(state, pod)[:2])

    def _make(self, entry: RankingEntry, state: CycleState, pod: PodRecord, missed: list[int] | None) -> bool:
        """Build the totals of a class that has none, or its ranking if the class was used lately."""
        if entry.waits:
            entry.waits -= 1
            return False
        nodes, is_sampling = self._runner.cluster.nodes, self._runner.is_sampling
        are_few = nodes.count <= self.few_nodes or is_sampling
        was_used = self.is_eager or (missed is not None and len(missed) <= MOST_CHANGES)
        evaluator = entry.evaluator
        if evaluator is None:
            if not (are_few or was_used):
                return False
            evaluator = entry.evaluator = RowEvaluator(self._runner, state, pod)
            entry.node_position = nodes.node_changes.position
        is_plain = are_few and evaluator.has_one_cell()
        if is_sampling and not is_plain:
            raise CannotRankError
        if not (is_plain or was_used):
            return False
        rated = evaluator.all_rows(state, pod)
        ranking: ClassRanking | Totals
        if is_plain:
            ranking = Totals(nodes.name_order())
            ranking.write(rated.rows, rated.totals)
        else:
            ranking = ClassRanking(nodes.name_order(), nodes.count)
            ranking.fill(*rated)
            if len(ranking.cells) > MOST_CELLS:
                raise CannotRankError
        entry.ranking = ranking
        return True


def _move(ranking: ClassRanking, evaluator: RowEvaluator, rows: list[int], totals: list[int]) -> None:
    """Move some rows to where their totals place them."""
    for row, total in zip(rows, totals, strict=True):
        if total < 0:
            ranking.remove(row)
        else:
            ranking.put(row, evaluator.key(row), total)
    if len(ranking.cells) > MOST_CELLS:
        raise CannotRankError


def _best_row(evaluator: RowEvaluator, ranking: ClassRanking | Totals, pod: PodRecord, lot: int) -> int | None:
    """Return the row with the highest total, of several the one at index ``lot``; None if no row fits."""
    if isinstance(ranking, Totals):
        return ranking.best(lot)
    if len(ranking.cells) == 1 and not evaluator.filters:
        (cell,) = ranking.cells.values()
        return ranking.nth([cell.top], lot % cell.top.size)
    cells = list(ranking.cells.values())
    rows = list(map(ranking.nth, [[cell.top] for cell in cells], repeat(0)))
    for cell_filter in evaluator.filters if cells else ():
        fits = cell_filter.fits(pod, rows)
        left = [(cell, row) for cell, row, fit in zip(cells, rows, fits, strict=True) if fit]
        if not left:
            return None
        cells, rows = [cell for cell, _ in left], [row for _, row in left]
    if not cells:
        return None
    buckets = [cells[0].top] if len(cells) == 1 else _best(evaluator, cells, rows, pod)
    return ranking.nth(buckets, lot % sum([bucket.size for bucket in buckets]))


def _best(evaluator: RowEvaluator, cells: list[RankedCell], rows: list[int], pod: PodRecord) -> list[ScoreBucket]:
    """Return the buckets with the highest total overall, given cells and a row of each."""
    sizes = [cell.size for cell in cells]
    totals = [cell.top.total for cell in cells]
    for one, weight in evaluator.scores:
        totals = [total + weight * score for total, score in zip(totals, one.score(pod, rows, sizes), strict=True)]
    highest = max(totals)
    return [cell.top for cell, total in zip(cells, totals, strict=True) if total == highest]
