"""How many pods of a kind each node takes, and what ends it there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from podium.app.planning.bounds import MOST_PLACED
from podium.app.planning.deciding.causes import Blocked, blocked, obstacles_of, worded
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Fate, Settled
from podium.app.planning.deciding.settling import preemption_of
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.cluster.worlds import Worlds
from podium.framework.cycle_state import CycleState
from podium.framework.runner import Runner

MOST_ON_A_NODE = 2_000
"""So many more pods are tried on a node at most."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more pods of a kind fit, by row, and what ends it there, in words.

    `before` is what keeps them off every node, "" for nothing. `is_cut`: more may fit than were tried.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    ends: Mapping[int, str] = field(default_factory=dict)
    before: str = ""
    is_cut: bool = False

    @property
    def total(self) -> int:
        """How many fit in all."""
        return sum(self.counts.values())


def capacity_of(decisions: Decisions, pod: PodRecord, *, preempts: bool = False) -> Capacity:
    """How many pods such as this fit; with ``preempts``, if every pod that it may preempt gave way.

    Where each node answers for itself alone, all nodes are filled at once, a pod on each at a time; otherwise, as with
    spreading, affinity to pods, volumes and devices, pods are placed one after another as the scheduler would. So they
    are where whom they may preempt hangs on whom others did: budgets that are required, caps on disruptions, fairness
    between equals, victims on other nodes. Pods of a gang are placed together.
    """
    if decisions.is_of_gang(pod):
        return _of_gang(decisions, pod, preempts=preempts)
    stopped = blocked(decisions, Settled((), (pod,)))[0]
    if stopped.before is not None:
        return Capacity(before=stopped.before.text)
    return _by_row(decisions, pod, preempts=preempts) or _one_by_one(decisions, pod, preempts=preempts)


def _by_row(decisions: Decisions, pod: PodRecord, *, preempts: bool) -> Capacity | None:
    """How many fit where each node answers for itself alone; None where it does not."""
    runner, state = decisions.runners[pod.scheduler_name], CycleState()
    pre_filter = runner.pre_filter(state, pod)
    rows = decisions.cluster.nodes.all_rows() if pre_filter.rows is None else pre_filter.rows
    rows = rows[decisions.cluster.nodes.present[rows]]
    if runner.is_row_local(state) and len(rows) and not (preempts and _looks_beyond_nodes(decisions, runner)):
        return _all_at_once(decisions, runner, state, pod, rows, preempts=preempts)
    return None


def _all_at_once(
    decisions: Decisions, runner: Runner, state: CycleState, pod: PodRecord, rows: Int64s, *, preempts: bool
) -> Capacity:
    """Fill the world of each row until its filters refuse."""
    worlds = Worlds(decisions.cluster, rows)
    if preempts:
        _let_go(decisions, runner, pod, worlds)
    counts = dict.fromkeys(rows.tolist(), 0)
    ends: dict[int, str] = {}
    for _ in range(MOST_ON_A_NODE):
        if not len(worlds):
            break
        outcome = runner.filter_worlds(state, pod, worlds, pod.uid)
        fits: Bools = outcome.refused == 0
        for position in np.flatnonzero(~fits).tolist():
            row = int(worlds.rows[position])
            ends[row] = worded(obstacles_of(decisions.cluster, pod, row, outcome.status(position)))
        worlds = worlds.at(np.flatnonzero(fits))
        for row in worlds.rows.tolist():
            counts[row] += 1
        worlds.join(np.arange(len(worlds)), [pod] * len(worlds))
    ends = ends if preempts else _with_all_obstacles(decisions, pod, counts, ends)
    return Capacity(counts, ends, is_cut=len(worlds) > 0)


def _looks_beyond_nodes(decisions: Decisions, runner: Runner) -> bool:
    preemption = preemption_of(runner)
    return preemption is not None and (preemption.looks_beyond_nodes or decisions.cluster.caps.limits)


def _let_go(decisions: Decisions, runner: Runner, pod: PodRecord, worlds: Worlds) -> None:
    """Take all pods off that may be preempted for the pod. Mirror pods free nothing, whether or not they may be."""
    preemption = preemption_of(runner)
    if preemption is None:
        return
    pods = decisions.cluster.pods
    taken = preemption.may_take(pod, decisions.cluster)
    taken = taken[np.array([not pods.record(slot).is_mirror for slot in taken.tolist()], dtype=np.bool_)]
    positions = np.searchsorted(worlds.rows, pods.row[taken])
    among = worlds.rows[np.minimum(positions, len(worlds) - 1)] == pods.row[taken]
    order = np.argsort(positions[among], kind="stable")
    worlds.remove(positions[among][order].astype(np.int64), taken[among][order])


def _with_all_obstacles(
    decisions: Decisions, pod: PodRecord, counts: Mapping[int, int], ends: Mapping[int, str]
) -> dict[int, str]:
    """What ends it, and for nodes that take none all that stands in the way."""
    found = dict(ends)
    if 0 in counts.values():
        found |= {row: text for row, text in _told(decisions, pod).items() if not counts.get(row)}
    return found


def _one_by_one(decisions: Decisions, pod: PodRecord, *, preempts: bool) -> Capacity:
    fates: list[Fate] = []
    with decisions.supposing():
        for each in decisions.copies(pod, MOST_PLACED):
            settled = decisions.settle([each], preempts=preempts)
            if not settled.fates:
                break
            fates += settled.fates
        ends = _told(decisions, pod)
    row_of = decisions.cluster.nodes.row_of
    counts = dict.fromkeys(sorted(row_of.values()), 0)
    for fate in fates:
        counts[row_of[fate.node]] += 1
    return Capacity(counts, ends, is_cut=len(fates) == MOST_PLACED)


def _of_gang(decisions: Decisions, pod: PodRecord, *, preempts: bool) -> Capacity:
    """Let as many pods of a gang come as it needs, and then twice as many, until not all of them get a node."""
    number = min(max(decisions.least_of_gang(pod), 1), MOST_PLACED)
    found = _so_many(decisions, pod, number, preempts=preempts)
    is_free = found.is_cut and not preempts and not decisions.is_in_one_domain(pod)
    # One that is whole takes further pods wherever they fit.
    by_row = _by_row(decisions, pod, preempts=False) if is_free else None
    if by_row is not None:
        return by_row
    while found.is_cut and number < MOST_PLACED:
        number = min(number * 2, MOST_PLACED)
        found = _so_many(decisions, pod, number, preempts=preempts)
    return found


def _so_many(decisions: Decisions, pod: PodRecord, number: int, *, preempts: bool) -> Capacity:
    """So many pods of a gang come."""
    with decisions.supposing():
        settled = decisions.settle(decisions.copies(pod, number), preempts=preempts)
        if not settled.fates:
            told = decisions.told_of_gang(settled.waiting[0])
            return Capacity(before=f"{told}{blocked(decisions, settled)[0].text}")
        ends = _told(decisions, settled.waiting[0] if settled.waiting else pod)
    row_of = decisions.cluster.nodes.row_of
    placed = Counter(row_of[fate.node] for fate in settled.fates)
    counts = {row: placed[row] for row in sorted(row_of.values())}
    return Capacity(counts, ends, is_cut=not settled.waiting)


def _told(decisions: Decisions, pod: PodRecord) -> dict[int, str]:
    """What stands in the way of one more, by row."""
    found: Blocked = blocked(decisions, Settled((), (pod,)))[0]
    if found.before is not None:
        return dict.fromkeys(decisions.cluster.nodes.row_of.values(), found.before.text)
    return {int(row): worded(alike.obstacles) for alike in found.nodes for row in alike.rows if alike.obstacles}
