"""What the trials of preemption across nodes came to, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from podium.cluster.arrays import Int64s
from podium.decide.preempting.trial_table import BEYOND_BUDGETS, NOBODY_IN_THE_WAY, NOT_TRIED, TrialTable, VictimLists
from podium.decide.preempting.wide.sets import Asking, MemberSets


@dataclass(slots=True, eq=False)
class WideResults:
    """What the trials on some rows came to."""

    asking: Asking
    rows: Int64s
    refused: Int64s = field(init=False)
    costs: Int64s = field(init=False)
    violations: Int64s = field(init=False)
    sets: dict[int, Int64s] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.refused = np.full(len(self.rows), NOT_TRIED, dtype=np.int64)
        self.violations = np.zeros(len(self.rows), dtype=np.int64)
        self.costs = np.zeros((len(self.asking.criteria), len(self.rows)), dtype=np.int64)

    def put(self, positions: Int64s, sets: MemberSets) -> None:
        """The victims on some rows, where the pod fits without them."""
        self.costs[:, positions] = self.asking.costs(self.rows[positions], sets)
        violations = self.violations[positions] = self.asking.violations(sets)
        refused = np.where(np.diff(sets.starts) > 0, 0, NOBODY_IN_THE_WAY)
        if self.asking.requires_budgets:
            refused[violations > 0] = BEYOND_BUDGETS
        self.refused[positions] = refused
        for place, position in enumerate(positions.tolist()):
            self.sets[position] = sets.members[sets.starts[place] : sets.starts[place + 1]]

    def numbers(self, positions: Int64s) -> Int64s:
        """``[positions]``: of how many victims it is known that they are enough on each row, 0 where of none."""
        known = zip(positions.tolist(), self.refused[positions].tolist(), strict=True)
        return np.array([0 if refused else len(self.sets[position]) for position, refused in known], dtype=np.int64)

    def best(self) -> Int64s | None:
        """The lowest cost; None where there is no candidate."""
        found = np.flatnonzero(self.refused == 0)
        if not len(found):
            return None
        best: Int64s = self.costs[:, found[np.lexsort(self.costs[::-1, found])[0]]]
        return best

    def table(self) -> TrialTable:
        """The trials as a table."""
        candidates = np.flatnonzero(self.refused == 0)
        members = [self.sets[position] for position in candidates.tolist()]
        starts = np.concatenate([[0], np.cumsum([len(found) for found in members])]).astype(np.int64)
        slots = self.asking.take.slots[np.concatenate(members)] if members else np.empty(0, dtype=np.int64)
        lists = VictimLists(self.rows[candidates], starts, slots)
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
