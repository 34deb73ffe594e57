"""The trials of preemption for one pod class and priority, kept for all rows, and its candidates in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Int64s, UInt64s, grown
from podium.decide.preempting.candidate_order import CandidateOrder
from podium.decide.preempting.trial_table import CRITERIA, RowTrial, TrialTable, VictimLists, explained
from podium.framework.status import Status
from podium.framework.verdicts import Decoders

# Stands for rows that preemption need not be tried on.
_PASSED_OVER = -9


class KeptTrials:
    """The trials on every row, right as of ``position`` of the change log and ``budgets`` of that of budgets.

    For each row it holds seven numbers and its victims. ``standing`` is None until candidates are asked for in order.
    """

    __slots__ = ("budgets", "criteria", "decoders", "lists", "position", "refused", "standing")

    def __init__(self) -> None:
        self.position = -1
        self.budgets = -1
        self.refused: Int64s = np.empty(0, dtype=np.int64)
        self.criteria: Int64s = np.empty((len(CRITERIA), 0), dtype=np.int64)
        self.lists = VictimLists.none()
        self.decoders: Decoders = {}
        self.standing: Standing | None = None

    def trial(self, row: int) -> RowTrial:
        """The trial on a row."""
        refused, key = self.refused.item(row), tuple(self.criteria[:, row].tolist())
        return RowTrial(refused, key, () if refused else tuple(self.lists.on(row)))

    def victims(self, row: int) -> tuple[Sequence[int], int]:
        """The victims on the row of a candidate, and how many of them violate a budget."""
        return self.lists.on(row), self.criteria.item(0, row)

    def replace(self, table: TrialTable) -> None:
        """Keep these trials on all rows, and nothing else."""
        self.refused, self.criteria = table.refused, table.criteria
        self.lists, self.decoders = table.lists, table.decoders
        self.standing = None

    def update(self, table: TrialTable, count: int) -> None:
        """Keep trials on some rows, of ``count`` that there are."""
        self._grow(count)
        self.refused[table.rows], self.criteria[:, table.rows] = table.refused, table.criteria
        self.lists.update(table.lists)
        self.decoders.update(table.decoders)
        if self.standing is not None:
            self.standing.missed.update(dict.fromkeys(table.rows.tolist()))

    def update_row(self, row: int, trial: RowTrial, count: int) -> None:
        """Keep the trial on a row, of ``count`` that there are."""
        self._grow(count)
        self.refused[row], self.criteria[:, row] = trial.refused, trial.key
        if trial.victims:
            self.lists.put(row, trial.victims)
        if self.standing is not None:
            self.standing.missed[row] = trial

    def _grow(self, count: int) -> None:
        if count > len(self.refused):
            self.refused, self.criteria = grown(self.refused, count), grown(self.criteria, count)


class Standing:
    """The trials that count for pods of the class which fit nowhere: those on rows whose refusal they might lift.

    ``missed`` are the rows of which it has to be told anew, with the trial where that is at hand.
    """

    __slots__ = ("_counts", "_order", "_refused", "missed")

    def __init__(self, kept: KeptTrials, rows: Int64s, name_hashes: UInt64s) -> None:
        """Begin with the trials on ``rows``, ascending; ``name_hashes`` are those of all rows."""
        self._refused: Int64s = np.full(len(kept.refused), _PASSED_OVER, dtype=np.int64)
        self._refused[rows] = kept.refused[rows]
        values, numbers = np.unique(self._refused[rows], return_counts=True)
        # By what they came to, on how many rows trials did.
        self._counts: dict[int, int] = dict(zip(values.tolist(), numbers.tolist(), strict=True))
        candidates = rows[kept.refused[rows] == 0]
        self._order = CandidateOrder(candidates, kept.criteria[:, candidates], name_hashes[candidates])
        self.missed: dict[int, RowTrial | None] = {}

    def put(self, row: int, refused: int, key: tuple[int, ...], name_hash: int) -> None:
        """The trial on a row, which counts from now on."""
        if refused and row < len(self._refused) and self._refused.item(row) == refused:
            return
        self.leave(row)
        self._refused[row] = refused
        self._counts[refused] = self._counts.get(refused, 0) + 1
        if refused == 0:
            self._order.put(row, key, name_hash)

    def leave(self, row: int) -> None:
        """Let the trial on a row, if there was one, count no more."""
        if row >= len(self._refused):
            self._refused = np.concatenate(
                [self._refused, np.full(row + 64 - len(self._refused), _PASSED_OVER, dtype=np.int64)]
            )
        before: int = self._refused.item(row)
        if before == _PASSED_OVER:
            return
        self._refused[row] = _PASSED_OVER
        left = self._counts[before] = self._counts[before] - 1
        if not left:
            del self._counts[before]
        if before == 0:
            self._order.drop(row)

    def draw(self, lot: int, most: int) -> tuple[int, tuple[int, ...]] | None:
        """The row that the criteria and, among equals, a lot choose; and ``most`` of the equals at most.

        None where there is no candidate.
        """
        return self._order.draw(lot, most)

    @property
    def candidates(self) -> int:
        """How many candidates there are."""
        return self._counts.get(0, 0)

    def tally(self, decoders: Decoders) -> list[tuple[Status, int]]:
        """Each reason why rows are no candidates, with their number."""
        return [(explained(refused, decoders), number) for refused, number in sorted(self._counts.items()) if refused]
