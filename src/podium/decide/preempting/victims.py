"""Whom to preempt on each node: all nodes' worlds are tried at once.

On every node all lower-priority pods are removed; where the preemptor fits then, they are given back one by one while
it still fits: those whose disruption would violate a budget first, then by falling importance. Round k tries the k-th
pod of every world together.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.budgets import Budget
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.worlds import Worlds
from podium.framework.cycle_state import CycleState
from podium.framework.handle import Handle
from podium.framework.kept.row_filters import RowFilters
from podium.framework.verdicts import Outcome

SlotsAt = tuple[Int64s, Int64s]
"""Pods on some nodes: the position of each pod's node, ascending, and the pod's slot."""


@dataclass(frozen=True, slots=True)
class PotentialVictims:
    """Flat lists of pods by node: ``slots[starts[i]:starts[i + 1]]`` are those on ``rows[i]``, most important first.

    ``violating`` is ``[slots]``: disrupting the pod would take more of a budget than is left.
    """

    rows: Int64s
    starts: Int64s
    slots: Int64s
    violating: Bools

    @property
    def owners(self) -> Int64s:
        """``[slots]``: the position in ``rows`` of each pod's node."""
        return np.repeat(np.arange(len(self.rows)), np.diff(self.starts))


@dataclass(frozen=True, slots=True)
class Victims:
    """What the worlds came to. ``outcome`` is ``[rows]``: whether the preemptor fits with all potential victims gone.

    ``chosen`` is ``[slots]``: the potential victims that could not be given back, on the rows where it fits.
    """

    potential: PotentialVictims
    outcome: Outcome
    chosen: Bools


def with_budgets(
    cluster: Cluster, rows: Int64s, starts: Int64s, slots: Int64s, leaving: Sequence[PodRecord] = ()
) -> PotentialVictims:
    """Mark the pods that budgets protect.

    On each node by itself, each pod in order takes one from every budget that covers it; it violates if one of them has
    nothing left. A pod that a budget already counts as disrupted takes nothing from it. A healthy pod also takes a
    token of the budget's rate, if it has one, and violates if there is none left. ``leaving`` are pods whose disruption
    has been begun and is not counted yet: they take first.
    """
    violating = np.zeros(len(slots), dtype=np.bool_)
    before = np.repeat(starts[:-1], np.diff(starts))
    for budget, counted, covered in budgets_over(cluster, slots):
        anew = not_yet_disrupted(cluster, slots, counted, budget)
        begun = sum(budget.covers(pod.pod_class) for pod in leaving)
        violating |= _beyond(anew & covered, before, budget.disruptions_allowed - begun)
        if budget.tokens is not None:
            begun = sum(pod.is_healthy and budget.counts(pod.pod_class) for pod in leaving)
            violating |= _beyond(anew & cluster.pods.healthy[slots], before, budget.tokens - begun)
    return PotentialVictims(rows, starts, slots, violating)


def budgeted(cluster: Cluster, slots: Int64s) -> Bools:
    """``[slots]``: the pods whose disruption counts for the caps of components: healthy ones with a budget."""
    found: Bools = np.zeros(len(slots), dtype=np.bool_)
    for _, counted, _ in budgets_over(cluster, slots):
        found |= counted
    found &= cluster.pods.healthy[slots]
    return found


def budgets_over(cluster: Cluster, slots: Int64s) -> Iterator[tuple[Budget, Bools, Bools]]:
    """The budgets over the pods in some slots, by key: ``[slots]`` whom each counts, and whom it covers."""
    if not len(cluster.budgets) or not len(slots):
        return
    classes = cluster.pods.pod_class[slots]
    numbers = np.bincount(classes)
    over: dict[str, tuple[Budget, list[int]]] = {}
    for class_id in np.flatnonzero(numbers).tolist():
        for budget in cluster.budgets.over(cluster.classes[class_id]):
            over.setdefault(budget.key, (budget, []))[1].append(class_id)
    for _, (budget, ids) in sorted(over.items()):
        counted, covered = (np.zeros(len(numbers), dtype=np.bool_) for _ in range(2))
        counted[ids] = True
        covered[[class_id for class_id in ids if budget.covers(cluster.classes[class_id])]] = True
        yield budget, counted[classes], covered[classes]


def not_yet_disrupted(cluster: Cluster, slots: Int64s, counted: Bools, budget: Budget) -> Bools:
    """Of the pods that a budget counts, those whose disruption it has not accounted for already."""
    if not budget.disrupted:
        return counted
    left = counted.copy()
    for index in np.flatnonzero(counted):
        left[index] = cluster.pods.record(int(slots[index])).name not in budget.disrupted
    return left


def _beyond(taking: Bools, before: Int64s, left: int) -> Bools:
    """``[slots]``: of the pods that take one each, those on each node for which none of ``left`` is left.

    ``before`` is ``[slots]``: where the pods of the pod's node begin.
    """
    taken = np.concatenate([[0], np.cumsum(taking)])
    beyond: Bools = taking & (taken[1:] - taken[before] > left)
    return beyond


def choose_victims(
    runner: Handle,
    state: CycleState,
    pod: PodRecord,
    potential: PotentialVictims,
    own_uid: str,
    gone: SlotsAt | None = None,
    order: Int64s | None = None,
) -> Victims:
    """Choose the victims on every row of ``potential``, each of which has at least one potential victim.

    ``own_uid`` is the pod whose nomination does not count: the preemptor's own. ``gone`` are pods on these rows that
    count as gone already, and are no victims. ``order`` are the indices of the potential victims by row, each row's as
    they are to be spared, the first one first; None: as kube-scheduler does.

    The set of a row is minimal, not minimum: none of its victims can be spared alone, yet a smaller set may exist.
    """
    worlds = Worlds(runner.cluster, potential.rows)
    if gone is not None:
        worlds.remove(*gone)
    worlds.remove(potential.owners, potential.slots)
    outcome = runner.filter_worlds(state, pod, worlds, own_uid)
    starts, lengths = potential.starts[:-1], np.diff(potential.starts)
    order = _reprieve_order(potential) if order is None else order
    chosen = np.zeros(len(potential.slots), dtype=np.bool_)
    playing = outcome.feasible
    for turn in range(int(lengths[playing].max(initial=0))):
        playing = playing[lengths[playing] > turn]
        pods = order[starts[playing] + turn]
        spared = _try_to_spare(runner, state, pod, worlds, playing, potential.slots[pods], own_uid)
        chosen[pods[~spared]] = True
    return Victims(potential, outcome, chosen)


def choose_victims_on(
    filters: RowFilters,
    pod: PodRecord,
    row: int,
    potential: Sequence[PodRecord],
    violating: Sequence[bool],
    own_uid: str,
) -> tuple[int, list[int]]:
    """The same on one row, without arrays.

    Returns why the preemptor does not fit with all of ``potential`` gone, 0 where it does; and the places of the
    victims among them, ascending.
    """
    gone = dict(enumerate(potential))
    refused = filters.refused_at_last(pod, row, list(gone.values()), own_uid)
    if refused:
        return refused, []
    for place in sorted(gone, key=lambda place: not violating[place]):
        spared = gone.pop(place)
        if filters.refused_at_last(pod, row, list(gone.values()), own_uid):
            gone[place] = spared
    return 0, sorted(gone)


def _reprieve_order(potential: PotentialVictims) -> Int64s:
    """Indices of the pods in the order of reprieve, by row."""
    if not potential.violating.any():
        return np.arange(len(potential.slots))
    return np.argsort(2 * potential.owners + ~potential.violating, kind="stable")


def _try_to_spare(
    runner: Handle,
    state: CycleState,
    pod: PodRecord,
    worlds: Worlds,
    positions: Int64s,
    slots: Int64s,
    own_uid: str,
) -> Bools:
    """Give one pod back to each of the worlds at ``positions``, and keep it there where the preemptor still fits."""
    trial = worlds.at(positions)
    trial.add(np.arange(len(positions)), slots)
    fits: Bools = runner.filter_worlds(state, pod, trial, own_uid).refused == 0
    worlds.add(positions[fits], slots[fits])
    return fits
