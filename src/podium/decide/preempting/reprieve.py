"""The reprieve, the common core of all searches for victims, and the victims on each node alone.

Each search removes all pods that may be victims, and gives them back while the preemptor still fits. Searches differ in
the pods that may be victims (those of a node, of any node, or of a gang's plan), in how a trial asks the filters, and
in the order in which pods are given back.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from podium.cluster.arrays import Bools, Int64s, Lists, offsets
from podium.cluster.pods import PodRecord
from podium.cluster.what_if_view import WhatIfView
from podium.decide.preempting.criteria import UPSTREAM, UPSTREAM_COST, VictimFacts, VictimSets
from podium.decide.preempting.trial_table import NO_VICTIM_NEEDED, WITHOUT_VICTIMS, TrialTable, victims_by_row
from podium.decide.preempting.victims import beyond_budgets
from podium.framework.cache.row_filters import RowFilters
from podium.framework.handle import CycleState, Handle

GiveBack = Callable[[Int64s, Int64s], Bools]
"""``(rows, pods)``: gives one pod back to each row, given by positions, and returns where the preemptor still fits.

There the pod stays; elsewhere nothing changes."""

Unit = TypeVar("Unit")


class Preemptor(NamedTuple):
    """A pod that looks for victims: the interface to the scheduler, and what PreFilters prepared for the pod."""

    handle: Handle
    state: CycleState
    pod: PodRecord


def reprieve(
    needed: Bools,
    order: Lists,
    playing: Int64s,
    give_back: GiveBack,
    may_go_on: Callable[[Int64s], Int64s] | None = None,
) -> None:
    """Give the pods of many rows back, one by one, and clear those in ``needed`` that the preemptor can do without.

    ``order`` has the pods of each row in the order of reprieve, as indices of ``needed``. Round k tries the k-th pod of
    all rows in ``playing`` together. ``may_go_on`` drops rows that need no more rounds.

    The result is minimal, not minimum: no victim can be spared alone, yet a smaller set may exist.
    """
    lengths = order.lengths
    for turn in range(int(lengths[playing].max(initial=0))):
        playing = playing[lengths[playing] > turn]
        if may_go_on is not None:
            playing = may_go_on(playing)
        if not len(playing):
            return
        pods = order.entries[order.starts[playing] + turn]
        needed[pods[give_back(playing, pods)]] = False


def irreducible(
    units: Sequence[Unit], fits_without: Callable[[list[Unit], Unit], bool], *, repeats: bool = False
) -> list[Unit]:
    """Return the units that cannot be spared, tried one by one in their order.

    ``fits_without(others, unit)`` tells whether the preemptor fits if only the ``others`` are gone. With ``repeats``
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
) -> TrialTable:
    """Return the trials on ``rows``, ascending; those that ``potential`` leaves out have no potential victims.

    ``own_uid`` is the pod whose nomination does not count: the preemptor's own. ``gone`` are pods on these rows that
    count as gone already, and are no victims: positions in ``potential``, ascending, and slots. ``order`` are the
    indices of the potential victims by row, each row's in the order of reprieve. None for kube-scheduler's: pods that
    violate budgets first, then by falling importance.
    """
    handle, state, pod = preemptor
    refused = np.full(len(rows), WITHOUT_VICTIMS, dtype=np.int64)
    criteria = np.zeros((len(UPSTREAM), len(rows)), dtype=np.int64)
    if not len(potential):
        return TrialTable(rows, refused, criteria, {}, {})
    worlds, owners = WhatIfView(handle.cluster, potential.rows), potential.owners
    if gone is not None:
        worlds.remove(*gone)
    worlds.remove(owners, potential.entries)
    outcome = handle.filter_worlds(state, pod, worlds, own_uid)
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
        return np.asarray(handle.filter_worlds(state, pod, trial, own_uid).refused == 0)

    give_back = giving_back(worlds, potential.entries, fits)
    reprieve(needed, Lists(potential.starts, order), outcome.feasible, give_back)
    at = np.searchsorted(rows, potential.rows)
    numbers = potential.sums(needed)
    refused[at] = np.where((outcome.refused == 0) & (numbers == 0), NO_VICTIM_NEEDED, outcome.refused)
    some = np.flatnonzero(numbers)
    victims = Lists(offsets(numbers[some]), potential.entries[needed])
    violations = potential.sums(violating & needed)[some]
    sets = VictimSets(victims.starts, victims.entries, VictimFacts(handle), violations)
    criteria[:, at[some]] = UPSTREAM_COST.columns(sets)
    return TrialTable(rows, refused, criteria, victims_by_row(potential.rows[some], victims), dict(outcome.decoders))


def choose_victims_on(
    filters: RowFilters,
    pod: PodRecord,
    row: int,
    potential: Sequence[PodRecord],
    violating: Sequence[bool],
    own_uid: str,
) -> tuple[int, list[int]]:
    """Choose the victims on one row, without arrays.

    Returns why the preemptor does not fit with all of ``potential`` gone, 0 where it does; and the places of the
    victims among them, ascending.
    """
    refused = filters.refused_at_last(pod, row, potential, own_uid)
    if refused:
        return refused, []

    def fits_without(others: list[int], _place: int) -> bool:
        return not filters.refused_at_last(pod, row, [potential[place] for place in others], own_uid)

    order = sorted(range(len(potential)), key=lambda place: not violating[place])
    return 0, sorted(irreducible(order, fits_without))
