"""The results of preemption trials as a table over rows.

Source: pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from podium.cluster.arrays import Bools, Int64s, Lists, offsets
from podium.decide.preempting.criteria import CRITERIA, UPSTREAM, UPSTREAM_COST
from podium.framework.verdicts import Code, Decoders, Status, decoded, unresolvable

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
WITHOUT_VICTIMS = -2
# A filter that rejects the node as it is, and accepts it with every pod given back.
NO_VICTIM_NEEDED = -3
NOT_TRIED = -4
NEEDS_PROTECTED = -5
BEYOND_BUDGETS = -6
_EXPLAINED = {
    WITHOUT_VICTIMS: NO_VICTIMS,
    NO_VICTIM_NEEDED: Status(Code.ERROR, ("expected at least one victim pod on node",)),
    NOT_TRIED: unresolvable("not tried: more would have been left of maxSearchSteps, or nothing gained"),
    NEEDS_PROTECTED: unresolvable("a pod that may not be preempted depends on the victims"),
    BEYOND_BUDGETS: unresolvable("disruption budgets do not allow that all victims go"),
}


def explained(refused: int, decoders: Decoders) -> Status:
    """Return why a row is no candidate, by its entry in a table's ``refused``."""
    found = _EXPLAINED.get(refused)
    return decoded(refused, decoders) if found is None else found


def victims_by_row(rows: Int64s, victims: Lists) -> dict[int, Sequence[int]]:
    """Return the slots of the victims on each of some rows, most important first."""
    slots, starts = victims.entries.tolist(), victims.starts.tolist()
    return dict(zip(rows.tolist(), map(slots.__getitem__, map(slice, starts, starts[1:])), strict=True))


class RowTrial(NamedTuple):
    """The trial on one row, as in a `TrialTable`; ``key`` and ``victims`` (slots) are those of a candidate."""

    refused: int
    key: tuple[int, ...] = (0,) * len(UPSTREAM)
    victims: Sequence[int] = ()


@dataclass(slots=True, eq=False)
class TrialTable:
    """The trials on some rows, ascending.

    ``refused`` is ``[rows]``: 0 where the preemptor fits once the victims are gone, otherwise what `status` explains.
    ``criteria`` is ``[criteria, rows]``, in the order of ``criteria_names``, smaller is better. ``victims_on`` has the
    slots of the victims on the candidates' rows, the most important first. ``violations`` is ``[rows]``, how many of
    the victims violate a budget; None if that is among the criteria. If the cost ``is_stated``, the criteria are those
    of a `VictimCost`.
    """

    rows: Int64s
    refused: Int64s
    criteria: Int64s
    victims_on: Mapping[int, Sequence[int]]
    decoders: Decoders
    limited_to: Int64s | None = None
    criteria_names: tuple[str, ...] = UPSTREAM_COST.words
    violations: Int64s | None = None
    is_stated: bool = False

    @property
    def budget_violations(self) -> Int64s:
        """``[rows]``: how many of the victims violate a budget."""
        if self.violations is not None:
            return self.violations
        violations: Int64s = self.criteria[self.criteria_names.index(CRITERIA["BudgetViolations"].words)]
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
        """Return a copy that later trials do not change."""
        return replace(self, victims_on=dict(self.victims_on), decoders=dict(self.decoders))

    def only(self, positions: Int64s) -> TrialTable:
        """Return the same trials with fewer candidates."""
        return replace(self, limited_to=positions)

    def victims(self, position: int) -> Sequence[int]:
        """Return the slots of a candidate's victims."""
        return self.victims_on[self.rows.item(position)]

    def victim_lists(self, positions: Int64s) -> Lists:
        """Return the slots of some candidates' victims."""
        found = [self.victims(position) for position in positions.tolist()]
        return Lists(offsets(list(map(len, found))), np.array(list(chain(*found)), dtype=np.int64))

    def trial(self, position: int) -> RowTrial:
        """Return the trial at a position."""
        refused, key = int(self.refused[position]), tuple(self.criteria[:, position].tolist())
        return RowTrial(refused, key, () if refused else self.victims(position))

    def status(self, position: int) -> Status:
        """Return why a position is no candidate."""
        return explained(int(self.refused[position]), self.decoders)

    def tally(self) -> list[tuple[Status, int]]:
        """Return each reason why rows are no candidates, with their number."""
        values, counts = np.unique(self.refused[self.failures], return_counts=True)
        return [(explained(int(v), self.decoders), int(n)) for v, n in zip(values, counts, strict=True)]


def at_most(costs: Int64s, limit: Int64s) -> Bools:
    """Return ``[n]``: which of ``[criteria, n]`` costs are no larger than a limit, the first criterion first."""
    smaller = np.zeros(costs.shape[1], dtype=np.bool_)
    equal = np.ones(costs.shape[1], dtype=np.bool_)
    for values, most in zip(costs, limit, strict=True):
        smaller |= equal & (values < most)
        equal &= values == most
    return smaller | equal


def cheapest_first(costs: Int64s, sizes: Int64s, wanted: Bools) -> Int64s:
    """Return the wanted ones of ``[criteria, n]`` costs in ascending order; equal ones by size, then as they come."""
    order = np.flatnonzero(wanted)
    found: Int64s = order[np.lexsort((sizes[order], *costs[::-1, order]))]
    return found
