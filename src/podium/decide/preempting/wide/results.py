"""What the trials of preemption across nodes came to, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from podium.cluster.arrays import Int64s
from podium.decide.preempting.trial_table import BEYOND_BUDGETS, NOBODY_IN_THE_WAY, NOT_TRIED, TrialTable, VictimLists
from podium.decide.preempting.wide.sets import Asking, MemberSets


@dataclass(slots=True, eq=False)
class WideResults:
    """What the trials on some rows came to.

    The victims stand one after another in ``_members``, as they were found; those of a row are ``_numbers`` from
    ``_begins`` on.
    """

    asking: Asking
    rows: Int64s
    refused: Int64s = field(init=False)
    costs: Int64s = field(init=False)
    violations: Int64s = field(init=False)
    _begins: Int64s = field(init=False)
    _numbers: Int64s = field(init=False)
    _members: list[Int64s] = field(default_factory=list)
    _end: int = 0
    _best: Int64s | None = None

    def __post_init__(self) -> None:
        number = len(self.rows)
        self.refused = np.full(number, NOT_TRIED, dtype=np.int64)
        self.violations, self._begins, self._numbers = (np.zeros(number, dtype=np.int64) for _ in range(3))
        self.costs = np.zeros((len(self.asking.criteria), number), dtype=np.int64)

    def put(self, positions: Int64s, sets: MemberSets) -> None:
        """The victims on some rows, where the pod fits without them."""
        if not len(positions):
            return
        self.costs[:, positions] = self.asking.costs(self.rows[positions], sets)
        violations = self.violations[positions] = self.asking.violations(sets)
        numbers = np.diff(sets.starts)
        refused = np.where(numbers > 0, 0, NOBODY_IN_THE_WAY)
        if self.asking.requires_budgets:
            refused[violations > 0] = BEYOND_BUDGETS
        self.refused[positions] = refused
        self._begins[positions], self._numbers[positions] = self._end + sets.starts[:-1], numbers
        self._members.append(sets.members)
        self._end += len(sets.members)
        self._best = None

    def numbers(self, positions: Int64s) -> Int64s:
        """``[positions]``: of how many victims it is known that they are enough on each row, 0 where of none."""
        return np.where(self.refused[positions] == 0, self._numbers[positions], 0)

    def best(self) -> Int64s | None:
        """The lowest cost; None where there is no candidate."""
        if self._best is None:
            left = np.flatnonzero(self.refused == 0)
            for values in self.costs if len(left) else ():
                left = left[values[left] == values[left].min()]
            self._best = self.costs[:, left[0]].copy() if len(left) else None
        return self._best

    def table(self) -> TrialTable:
        """The trials as a table."""
        candidates = np.flatnonzero(self.refused == 0)
        numbers = self._numbers[candidates]
        starts = np.concatenate([[0], np.cumsum(numbers)])
        places = np.repeat(self._begins[candidates] - starts[:-1], numbers) + np.arange(starts[-1])
        members = np.concatenate([np.empty(0, dtype=np.int64), *self._members])[places]
        lists = VictimLists(self.rows[candidates], starts, self.asking.take.slots[members])
        # Of candidates there is none that violates what is required.
        first = int(self.asking.requires_budgets)
        return TrialTable(
            self.rows,
            self.refused,
            self.costs[first:],
            lists,
            self.asking.decoders,
            criteria_names=self.asking.criteria[first:],
            violations=self.violations,
            is_stated=self.asking.is_stated,
        )
