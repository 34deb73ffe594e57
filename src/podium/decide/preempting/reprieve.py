"""The reprieve, the common core of all searches for victims, the victims on each node alone, and the table of results.

Each search removes all pods that may be victims, and gives them back while the preemptor still fits. Searches differ in
the pods that may be victims (those of a node, of any node, or of a gang's plan), in how a trial asks the filters, and
in the order in which pods are given back.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode);
pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeVar

import numpy as np
from msgspec import Struct, structs

from podium.cluster.arrays import Bools, Int64s, Lists, offsets
from podium.cluster.pods import PodRecord
from podium.cluster.what_if_view import WhatIfView
from podium.decide.preempting.criteria import UPSTREAM, UPSTREAM_COST, VictimCost, VictimFacts, VictimSets
from podium.decide.preempting.eligibility import beyond_budgets
from podium.framework.cache.row_filters import RowFilters
from podium.framework.handle import CycleState, Handle
from podium.framework.verdicts import Code, Decoders, Status, decoded, unresolvable

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
WITHOUT_VICTIMS = -2
# A filter that rejects the node now, and accepts it with every pod given back.
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


def tally(numbers: Mapping[int, int], decoders: Decoders) -> list[tuple[Status, int]]:
    """Return each reason why rows are no candidates, and their number; ``numbers`` are those of rows by `explained`."""
    return [(explained(refused, decoders), number) for refused, number in sorted(numbers.items()) if refused and number]


def victims_by_row(rows: Int64s, victims: Lists) -> dict[int, Sequence[int]]:
    """Return the slots of the victims on each of some rows, most important first."""
    slots, starts = victims.entries.tolist(), victims.starts.tolist()
    return dict(zip(rows.tolist(), map(slots.__getitem__, map(slice, starts, starts[1:])), strict=True))


class RowTrial(Struct, frozen=True):
    """The trial on one row, as in a `TrialTable`; ``key`` and ``victims`` (slots) are those of a candidate."""

    refused: int
    key: tuple[int, ...] = (0,) * len(UPSTREAM)
    victims: Sequence[int] = ()


class TrialTable(Struct, eq=False):
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
        """``[rows]``: how many of the victims violate a budget; the first of kube-scheduler's criteria."""
        return self.criteria[0] if self.violations is None else self.violations

    @property
    def candidates(self) -> Int64s:
        """The positions where preemption would work."""
        return np.flatnonzero(self.refused == 0) if self.limited_to is None else self.limited_to

    @property
    def failures(self) -> Int64s:
        """The positions where preemption would not work."""
        return np.flatnonzero(self.refused != 0)

    def frozen(self) -> TrialTable:
        """Return a copy that later trials do not change."""
        return structs.replace(self, victims_on=dict(self.victims_on), decoders=dict(self.decoders))

    def only(self, positions: Int64s) -> TrialTable:
        """Return the same trials with fewer candidates."""
        return structs.replace(self, limited_to=positions)

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


GiveBack = Callable[[Int64s, Int64s], Bools]
"""``(rows, pods)``: gives one pod back to each row, given by positions, and returns where the preemptor still fits.

There the pod stays; elsewhere nothing changes."""

Unit = TypeVar("Unit")


class Preemptor(Struct, frozen=True, eq=False, dict=True):
    """A pod that looks for victims: the interface to the scheduler, and what PreFilters prepared for the pod."""

    handle: Handle
    state: CycleState
    pod: PodRecord

    @cached_property
    def facts(self) -> VictimFacts:
        """Facts about victims, valid until the cluster changes."""
        return VictimFacts(self.handle)


def reprieve(
    needed: Bools,
    order: Lists,
    undecided_rows: Int64s,
    give_back: GiveBack,
    may_go_on: Callable[[Int64s], Int64s] | None = None,
) -> None:
    """Give the pods of many rows back, one by one, and clear those in ``needed`` that the preemptor can do without.

    ``order`` has the pods of each row in the order of reprieve, as indices of ``needed``. Round k tries the k-th pod of
    all rows in ``undecided_rows`` together. ``may_go_on`` drops rows that need no more rounds.

    The result is minimal, not minimum: no victim can be spared alone, yet a smaller set may exist.
    """
    lengths = order.lengths
    for turn in range(int(lengths[undecided_rows].max(initial=0))):
        undecided_rows = undecided_rows[lengths[undecided_rows] > turn]
        if may_go_on is not None:
            undecided_rows = may_go_on(undecided_rows)
        if not len(undecided_rows):
            return
        pods = order.entries[order.starts[undecided_rows] + turn]
        needed[pods[give_back(undecided_rows, pods)]] = False


def irreducible(
    units: Sequence[Unit], fits_without: Callable[[list[Unit], Unit], bool], *, repeats: bool = False
) -> list[Unit]:
    """Return the units that cannot be spared, tried one by one in their order.

    ``fits_without(others, unit)`` returns whether the preemptor fits if only ``others`` are gone. With ``repeats``
    units are tried again once others were spared, since one pod fewer may also keep the preemptor off.
    """
    left = list(units)
    while True:
        before = len(left)
        for unit in list(left):
            others = [other for other in left if other is not unit]
            if fits_without(others, unit):
                left = others
        if not repeats or len(left) == before:
            return left


def giving_back(
    worlds: WhatIfView,
    slots: Int64s,
    fits: Callable[[WhatIfView], Bools],
    add: Callable[[WhatIfView, Int64s, Int64s], None] = WhatIfView.add,
) -> GiveBack:
    """Return a function that gives pods back in what-if views, one for each row; ``slots`` are those of all pods.

    With `WhatIfView.add_anywhere` they return to whatever node they were on.
    """

    def give_back(positions: Int64s, pods: Int64s) -> Bools:
        nonlocal worlds
        trial, returning = worlds.at(positions), slots[pods]
        add(trial, np.arange(len(positions)), returning)
        found = fits(trial)
        if len(positions) == len(worlds) and found.all():
            worlds = trial
        elif found.any():
            add(worlds, positions[found], returning[found])
        return found

    return give_back


@dataclass(frozen=True, slots=True, eq=False)
class PotentialVictims(Lists):
    """The pods (slots) on each of ``rows`` that may be victims, most important first; each row has some.

    ``violating`` is ``[slots]``: whether the pod's disruption would take more of a budget than is left. None if that is
    still to be computed on the nodes where it matters.
    """

    rows: Int64s
    violating: Bools | None = None

    @classmethod
    def on(cls, rows: Int64s, owners: Int64s, slots: Int64s, violating: Bools | None = None) -> PotentialVictims:
        """Return pods by the positions of their rows, ``owners``, ascending."""
        numbers = np.bincount(owners, minlength=len(rows))
        some = np.flatnonzero(numbers)
        return cls(offsets(numbers[some]), slots, rows[some], violating)


def choose_victims(
    preemptor: Preemptor,
    rows: Int64s,
    potential: PotentialVictims,
    own_uid: str,
    gone: tuple[Int64s, Int64s] | None = None,
    order: Int64s | None = None,
    cost: VictimCost | None = None,
) -> TrialTable:
    """Return the trials on ``rows``, ascending; those that ``potential`` leaves out have no potential victims.

    ``own_uid`` is the pod whose nomination does not count: the preemptor's own. ``gone`` are pods on these rows that
    count as gone already, and are no victims: positions in ``potential``, ascending, and slots. ``order`` are the
    indices of the potential victims by row, each row's in the order of reprieve. None for kube-scheduler's: pods that
    violate budgets first, then by falling importance. ``cost`` None compares victims as kube-scheduler does.
    """
    handle, state, pod, counted = preemptor.handle, preemptor.state, preemptor.pod, cost or UPSTREAM_COST
    refused = np.full(len(rows), WITHOUT_VICTIMS, dtype=np.int64)
    criteria = np.zeros((len(counted.criteria), len(rows)), dtype=np.int64)
    violations = np.zeros(len(rows), dtype=np.int64)
    table = TrialTable(rows, refused, criteria, {}, {}, None, counted.words, violations, is_stated=cost is not None)
    if not len(potential):
        return table
    worlds, owners = WhatIfView(handle.cluster, potential.rows), potential.owners
    if gone is not None:
        worlds.remove(*gone)
    worlds.remove(owners, potential.entries)
    outcome = handle.filter_what_if(state, pod, worlds, own_uid)
    needed: Bools = (outcome.refused == 0)[owners]
    violating = potential.violating
    if violating is None:
        violating = np.zeros(len(owners), dtype=np.bool_)
        if len(outcome.feasible) and len(handle.cluster.budgets):
            fitting = Lists(offsets(potential.lengths[outcome.feasible]), potential.entries[needed])
            violating[needed] = beyond_budgets(handle.cluster, fitting)
    if order is None:
        order = np.argsort(2 * owners + ~violating, kind="stable") if violating.any() else np.arange(len(owners))

    def fits(trial: WhatIfView) -> Bools:
        return np.asarray(handle.filter_what_if(state, pod, trial, own_uid).refused == 0)

    give_back = giving_back(worlds, potential.entries, fits)
    reprieve(needed, Lists(potential.starts, order), outcome.feasible, give_back)
    at = np.searchsorted(rows, potential.rows)
    numbers = potential.sums(needed)
    refused[at] = np.where((outcome.refused == 0) & (numbers == 0), NO_VICTIM_NEEDED, outcome.refused)
    some = np.flatnonzero(numbers)
    victims = Lists(offsets(numbers[some]), potential.entries[needed])
    violations[at[some]] = potential.sums(violating & needed)[some]
    sets = VictimSets(victims.starts, victims.entries, preemptor.facts, violations[at[some]])
    criteria[:, at[some]] = counted.columns(sets)
    table.victims_on, table.decoders = victims_by_row(potential.rows[some], victims), dict(outcome.decoders)
    return table


def choose_victims_on(
    filters: RowFilters,
    pod: PodRecord,
    row: int,
    potential: Sequence[PodRecord],
    violating: Sequence[bool],
    own_uid: str,
) -> list[int]:
    """Choose the victims on one row, where the preemptor fits with all of ``potential`` gone, without arrays.

    Returns the places of the victims among them, ascending.
    """

    def fits_without(others: list[int], _place: int) -> bool:
        return not filters.refused_at_last(pod, row, [potential[place] for place in others], own_uid)

    order = sorted(range(len(potential)), key=lambda place: not violating[place])
    return sorted(irreducible(order, fits_without))
