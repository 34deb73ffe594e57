"""What all filters say of all rows to the pods of a class and priority, kept with its tally as rows change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import ref

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.change_log import ChangeLog
from podium.framework.verdicts import Counted, Decoders, Outcome

Compute = Callable[[Int64s], Int64s]


class KeptOutcome:
    """An outcome for every row, right as of a position of the change log: one number a row.

    Outcomes that are given out stay as they are: who still holds the last one gets to keep its array, and what changes
    is a copy.
    """

    __slots__ = ("_counted", "_explained_by", "_lent", "_refused", "decoders", "position")

    def __init__(self) -> None:
        self.decoders: Decoders = {}
        self.position = -1
        self._refused: Int64s = np.empty(0, dtype=np.int64)
        # On how many rows each entry stands: one object for all outcomes that are given out until an entry changes, or
        # what entries stand for.
        self._counted = Counted({})
        self._explained_by: Decoders = {}
        self._lent: ref[Int64s] | None = None

    def refresh(self, log: ChangeLog, rows: Int64s, compute: Compute) -> None:
        """Bring it up to date; ``rows`` are all there are, and ``compute`` answers for some of them."""
        if self.position == log.position:
            return
        changed = log.since(self.position) if self.position >= 0 and len(self._refused) == len(rows) else None
        if changed is None or len(changed) > len(rows) // 4:
            self._refused = compute(rows)
            values, numbers = np.unique(self._refused, return_counts=True)
            self._counted = Counted(dict(zip(values.tolist(), numbers.tolist(), strict=True)))
            self._lent = None
        else:
            self._write(changed.tolist(), compute(changed).tolist())
        # Only now: a plugin that failed must be asked again.
        self.position = log.position

    def put(self, rows: Sequence[int], entries: Sequence[int], position: int) -> None:
        """Bring it up to date, up to a position of the log, with the entries of the rows that have changed."""
        self._write(rows, entries)
        self.position = position

    def outcome(self) -> Outcome:
        """The outcome as it is now."""
        lent = None if self._lent is None else self._lent()
        if lent is None:
            lent = self._refused.view()
            lent.flags.writeable = False
            self._lent = ref(lent)
        if self._explained_by != self.decoders:
            self._explained_by, self._counted = dict(self.decoders), Counted(self._counted.numbers)
        outcome = Outcome.of(lent, dict(self.decoders), self._counted)
        outcome.position = self.position
        return outcome

    def outcome_but(self, row: int, refused: int) -> Outcome:
        """The outcome as it is now but for one row."""
        entries, numbers = self._refused.copy(), dict(self._counted.numbers or {})
        _move(numbers, int(entries[row]), refused)
        entries[row] = refused
        outcome = Outcome.of(entries, dict(self.decoders), Counted(numbers))
        outcome.position = self.position
        return outcome

    def _write(self, rows: Sequence[int], entries: Sequence[int]) -> None:
        item = self._refused.item
        changed = [(row, after) for row, after in zip(rows, entries, strict=True) if item(row) != after]
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
    """One row has another entry."""
    if numbers[before] == 1:
        del numbers[before]
    else:
        numbers[before] -= 1
    numbers[after] = numbers.get(after, 0) + 1
