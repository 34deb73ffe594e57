"""What trials of preemption came to, as a table over rows.

Source: pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption, pickOneNodeForPreemption).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from podium.cluster.arrays import Int64s
from podium.framework.status import Code, Status, unresolvable
from podium.framework.verdicts import Decoders, decoded

CRITERIA = (
    "fewest budget violations",
    "lowest priority of the most important victim",
    "smallest sum of victims' priorities",
    "fewest victims",
    "latest start of the most important victims",
)

AFFINITY_KEPT = "keeping whom the pod requires to be near"
"""The criterion that comes before all others where a preemptor keeps its partners."""

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
WITHOUT_VICTIMS = -2
# A filter that refuses the node as it is, and accepts it with every pod given back.
_NOBODY_IN_THE_WAY = Status(Code.ERROR, ("expected at least one victim pod on node",))
NOBODY_IN_THE_WAY = -3
NOT_TRIED = -4
NEEDS_PROTECTED = -5
BEYOND_BUDGETS = -6
_EXPLAINED = {
    WITHOUT_VICTIMS: NO_VICTIMS,
    NOBODY_IN_THE_WAY: _NOBODY_IN_THE_WAY,
    NOT_TRIED: unresolvable("not tried: more would have been left of maxSearchSteps, or nothing gained"),
    NEEDS_PROTECTED: unresolvable("a pod that may not be preempted depends on the victims"),
    BEYOND_BUDGETS: unresolvable("disruption budgets do not allow that all victims go"),
}


def explained(refused: int, decoders: Decoders) -> Status:
    """Why a row is no candidate, by its entry in a table's ``refused``."""
    found = _EXPLAINED.get(refused)
    return decoded(refused, decoders) if found is None else found


class VictimLists:
    """The slots of the victims on some rows, most important first.

    Those of many rows that were tried together stand one after another in one array; those that were tried again since
    stand apart.
    """

    __slots__ = ("_again", "_rows", "_slots", "_starts")

    def __init__(self, rows: Int64s, starts: Int64s, slots: Int64s) -> None:
        """``slots[starts[i]:starts[i + 1]]`` are the victims on ``rows[i]``; rows ascend."""
        self._rows = rows
        self._starts = starts
        self._slots = slots
        self._again: dict[int, Sequence[int]] = {}

    @classmethod
    def none(cls) -> VictimLists:
        """No victims anywhere."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, np.zeros(1, dtype=np.int64), nothing)

    def on(self, row: int) -> Sequence[int]:
        """The victims on a row which has some."""
        again = self._again.get(row)
        if again is not None:
            return again
        # The memory of arrays is read in a fraction of the time that it takes to ask these.
        rows, starts = self._rows.data, self._starts.data
        at = bisect_left(rows, row)
        if at == len(rows) or rows[at] != row:
            raise KeyError(row)
        slots: list[int] = self._slots.data[starts[at] : starts[at + 1]].tolist()
        return slots

    def update(self, other: VictimLists) -> None:
        """Take over the victims on the rows of ``other``."""
        starts, slots = other._starts.tolist(), other._slots.tolist()
        for at, row in enumerate(other._rows.tolist()):
            self._again[row] = slots[starts[at] : starts[at + 1]]
        self._again |= other._again

    def put(self, row: int, slots: Sequence[int]) -> None:
        """Take over the victims on one row."""
        self._again[row] = slots

    def copy(self) -> VictimLists:
        """The lists as they are now."""
        copy = VictimLists(self._rows, self._starts, self._slots)
        copy._again = dict(self._again)
        return copy


class RowTrial(NamedTuple):
    """The trial on one row, as in a `TrialTable`; ``key`` and ``victims`` (slots) are those of a candidate."""

    refused: int
    key: tuple[int, ...] = (0,) * len(CRITERIA)
    victims: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class TrialTable:
    """The trials on some rows, ascending.

    ``refused`` is ``[rows]``: 0 where the preemptor fits once the victims are gone, otherwise what `status` explains.
    ``criteria`` is ``[criteria, rows]``, in the order of ``criteria_names``, smaller is better. ``lists`` holds the
    victims on the candidates' rows, but for those of ``own_row``, which are in ``own_list``. ``violations`` is
    ``[rows]``, how many of the victims violate a budget; None where that is among the criteria.
    Where the cost ``is_stated``, the criteria are those of a `VictimCost`.
    """

    rows: Int64s
    refused: Int64s
    criteria: Int64s
    lists: VictimLists
    decoders: Decoders
    own_row: int = -1
    own_list: VictimLists = field(default_factory=VictimLists.none)
    limited_to: Int64s | None = None
    criteria_names: tuple[str, ...] = CRITERIA
    violations: Int64s | None = None
    is_stated: bool = False

    @property
    def budget_violations(self) -> Int64s:
        """``[rows]``: how many of the victims violate a budget."""
        if self.violations is not None:
            return self.violations
        violations: Int64s = self.criteria[self.criteria_names.index(CRITERIA[0])]
        return violations

    @property
    def candidates(self) -> Int64s:
        """The positions where preemption would work."""
        return np.flatnonzero(self.refused == 0) if self.limited_to is None else self.limited_to

    @property
    def failures(self) -> Int64s:
        """The positions where it would not."""
        return np.flatnonzero(self.refused != 0)

    def frozen(self) -> TrialTable:
        """A copy that later trials do not change."""
        return replace(self, lists=self.lists.copy(), decoders=dict(self.decoders))

    def only(self, positions: Int64s) -> TrialTable:
        """The same trials with fewer candidates."""
        return replace(self, limited_to=positions)

    def victims(self, position: int) -> Sequence[int]:
        """The slots of a candidate's victims."""
        row = int(self.rows[position])
        return (self.own_list if row == self.own_row else self.lists).on(row)

    def victim_slots(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """The slots of the victims of some candidates, one after another, and where each one's begin; and the end."""
        found = [self.victims(position) for position in positions.tolist()]
        starts = np.cumsum([0, *map(len, found)], dtype=np.int64)
        return starts, np.array([slot for slots in found for slot in slots], dtype=np.int64)

    def trial(self, position: int) -> RowTrial:
        """The trial at a position by itself."""
        refused, key = int(self.refused[position]), tuple(self.criteria[:, position].tolist())
        return RowTrial(refused, key, () if refused else tuple(self.victims(position)))

    def status(self, position: int) -> Status:
        """Why a position is no candidate."""
        return explained(int(self.refused[position]), self.decoders)

    def tally(self) -> list[tuple[Status, int]]:
        """Each reason why rows are no candidates, with their number."""
        values, counts = np.unique(self.refused[self.failures], return_counts=True)
        return [(explained(int(v), self.decoders), int(n)) for v, n in zip(values, counts, strict=True)]
