"""Where a pod goes: filter all nodes, rate those that passed, take one of the best.

Source: pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod, selectHost).
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import NodeColumns
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.extending import add_priorities, filter_by_extenders
from podium.decide.ties import lot, pick
from podium.framework.cycle_state import CycleState
from podium.framework.extenders import Extenders
from podium.framework.pre_filters import PreFiltered
from podium.framework.runner import Runner
from podium.framework.status import Status, unresolvable
from podium.framework.verdicts import Outcome

MINIMUM_NODES_TO_SCORE = 100
MINIMUM_PERCENTAGE = 5
LEFT_OUT = "PreFilter"
"""Stands for the plugin that refused a node where several PreFilters together left it out."""


_NO_ROWS: Int64s = np.empty(0, dtype=np.int64)
_NOT_TOLD = Outcome(0)


class Placement(msgspec.Struct, frozen=True, eq=False):
    """What one scheduling attempt found.

    ``rows`` are the rows that were looked at, ``outcome`` the filters' answer for each of them. ``feasible`` are the
    rows where the pod fits, ``totals`` their scores (None where there was nothing to compare), and ``row`` the one
    taken, None where there is none. ``cursor`` is where the next pod's sample of nodes starts. ``error`` says what went
    wrong where a filter failed: then no node is taken.
    """

    pod: PodRecord
    state: CycleState
    pre_filter: PreFiltered
    rows: Int64s
    outcome: Outcome
    feasible: Int64s
    totals: Int64s | None
    row: int | None
    cursor: int = 0
    error: str = ""

    def status(self, nodes: NodeColumns, row: int) -> Status:
        """Why the node in ``row`` was refused, or success."""
        if not self.pre_filter.status.is_success:
            return self.pre_filter.status
        position = int(np.searchsorted(self.rows, row))
        if position == len(self.rows) or self.rows[position] != row:
            return left_out(self.pre_filter)
        return self.outcome.status(position)


def left_out(pre_filter: PreFiltered) -> Status:
    """The status of nodes that a PreFilter left out."""
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(pre_filter.plugins)}]").by(LEFT_OUT)


def rejecting_plugins(placement: Placement) -> list[str]:
    """The plugins that turned the pod down on some node, or altogether."""
    status = placement.pre_filter.status
    if not status.is_success:
        return [status.plugin]
    named = dict.fromkeys([refusal.plugin for refusal, _ in placement.outcome.refusals()])
    return [*placement.pre_filter.plugins, *named]


def full_outcome(cluster: Cluster, placement: Placement) -> Outcome:
    """The filters' answer for every row, those that PreFilter turned down or left out included.

    A rejection at PreFilter is every node's.
    """
    if placement.pre_filter.status.is_success and placement.pre_filter.rows is None:
        return placement.outcome
    rejected = placement.pre_filter.status
    rest = left_out(placement.pre_filter) if rejected.is_success else rejected
    outcome = Outcome(cluster.nodes.count)
    outcome.refuse_all(rest, cluster.nodes.present[: cluster.nodes.count])
    if rejected.is_success:
        outcome.refused[placement.rows] = placement.outcome.refused
        outcome.decoders.update(placement.outcome.decoders)
    return outcome


def place(
    runner: Runner,
    pod: PodRecord,
    seed: int = 0,
    *,
    nominated_first: bool = True,
    cursor: int = 0,
    detailed: bool = True,
    among: Int64s | None = None,
) -> Placement:
    """Find a node for ``pod``.

    ``nominated_first``: if the pod fits one of the nodes that are `tried_first`, it goes there and no other node is
    looked at. ``cursor`` is what the placement before came to: from where on nodes are rated, if only a sample of them
    is. Nothing changes by being asked: the same pod, cluster, seed and cursor give the same placement.

    ``among`` are the rows, ascending, of the only nodes that are there for the pod; None for all.

    Without ``detailed`` it may tell no more than the row of a pod that fits somewhere: what is found without looking at
    every node (`podium.framework.kept.rankings`).
    """
    state = CycleState()
    pre_filter = _within(runner.pre_filter(state, pod), among)
    nodes = runner.cluster.nodes
    if not pre_filter.status.is_success:
        return Placement(pod, state, pre_filter, _NO_ROWS, Outcome(0), _NO_ROWS, None, None, cursor)
    extenders = runner.extenders_of(pod)
    if nominated_first and (pod.nominated_node_name or runner.cluster.replacements.awaited):
        tried = _try_first(runner, extenders, state, pod, pre_filter, cursor, detailed=detailed)
        if tried is not None:
            return tried
    if not detailed and pre_filter.rows is None and extenders is None:
        row = runner.rankings.best(state, pod, lot(pod.uid, seed))
        if row is not None:
            return Placement(pod, state, pre_filter, _NO_ROWS, _NOT_TOLD, _NO_ROWS, None, row, cursor)
    outcome = runner.filter(state, pod, pre_filter.rows)
    error = outcome.error()
    if error is not None:
        rows = nodes.all_rows() if pre_filter.rows is None else pre_filter.rows
        return Placement(pod, state, pre_filter, rows, outcome, _NO_ROWS, None, None, cursor, error.message)
    if pre_filter.rows is None:
        rows, fitting = nodes.all_rows(), outcome.feasible
        runner.rankings.learn(pod, fits=len(fitting) > 0)
    else:
        rows, fitting = pre_filter.rows, pre_filter.rows[outcome.feasible]
    feasible, cursor = _sample(runner, fitting, cursor)
    if extenders is not None and len(feasible):
        extended = filter_by_extenders(runner, extenders, pod, outcome, rows, feasible)
        outcome, feasible, problem = extended.outcome, extended.feasible, extended.error
        if problem:
            return Placement(pod, state, pre_filter, rows, outcome, feasible, None, None, cursor, problem)
    totals, row = _best(runner, extenders, state, pod, feasible, seed)
    return Placement(pod, state, pre_filter, rows, outcome, feasible, totals, row, cursor)


def _within(pre_filter: PreFiltered, among: Int64s | None) -> PreFiltered:
    """What the PreFilters said where some rows alone are there, None for all."""
    if among is None:
        return pre_filter
    return replace(pre_filter, rows=among if pre_filter.rows is None else np.intersect1d(among, pre_filter.rows))


def tried_first(cluster: Cluster, pod: PodRecord) -> tuple[str, ...]:
    """The nodes that are tried before all others: the one whose room is the pod's, then the one where room may be.

    The first is the one that it is nominated to. The other one is named by the eviction of the pod that it replaces
    (`podium.api.replacements`); kube-scheduler tries a node of its own guess in the same way, where it attempts pods
    that are alike one after the other (GetNodeHint).
    """
    nominated = pod.nominated_node_name
    hint = cluster.replacements.hint(pod.uid)
    if not hint or hint == nominated:
        return (nominated,) if nominated else ()
    return (nominated, hint) if nominated else (hint,)


def _try_first(
    runner: Runner,
    extenders: Extenders | None,
    state: CycleState,
    pod: PodRecord,
    pre_filter: PreFiltered,
    cursor: int,
    *,
    detailed: bool,
) -> Placement | None:
    """The placement on a node that is tried before the others, where the pod fits there (evaluateNominatedNode).

    An extender that does not answer leaves it to be found among all nodes.
    """
    for node_name in tried_first(runner.cluster, pod):
        row = runner.cluster.nodes.row_of.get(node_name)
        if row is None or (pre_filter.rows is not None and row not in pre_filter.rows):
            continue
        fits = None if detailed or extenders is not None else runner.kept.fits(state, pod, row)
        if fits:
            return Placement(pod, state, pre_filter, _NO_ROWS, _NOT_TOLD, _NO_ROWS, None, row, cursor)
        if fits is not None:
            continue
        rows = np.array([row], dtype=np.int64)
        outcome = runner.filter(state, pod, rows)
        if outcome.refused[0] != 0:
            continue
        if extenders is None or extenders.filter(pod, [node_name]).left:
            return Placement(pod, state, pre_filter, rows, outcome, rows, None, row, cursor)
    return None


def _best(
    runner: Runner, extenders: Extenders | None, state: CycleState, pod: PodRecord, feasible: Int64s, seed: int
) -> tuple[Int64s | None, int | None]:
    if not len(feasible):
        return None, None
    if len(feasible) == 1:
        return None, int(feasible[0])
    whole = len(feasible) == runner.cluster.nodes.count
    view = View(runner.cluster) if whole else View(runner.cluster, feasible)
    runner.scoring.prepare(state, pod, view)
    totals = runner.scoring.totals(state, pod, view)
    if extenders is not None:
        add_priorities(runner, extenders, pod, feasible, totals)
    return totals, pick(runner.cluster.nodes, feasible, pod.uid, seed, totals == totals.max())


def _sample(runner: Runner, feasible: Int64s, cursor: int) -> tuple[Int64s, int]:
    """The feasible nodes to rate: all of them, unless the profile asks for a percentage (0: by the cluster's size).

    And where the next sample starts.

    kube-scheduler stops filtering once it has found enough, from a place that moves on with every pod. Filtering all
    nodes at once costs us nothing, so that only the number is honoured: the first by name after that place.
    """
    percentage = runner.profile.percentage_of_nodes_to_score
    nodes = runner.cluster.nodes
    if percentage is None or percentage >= 100 or len(nodes) <= MINIMUM_NODES_TO_SCORE:
        return feasible, cursor
    if percentage == 0:
        percentage = max(MINIMUM_PERCENTAGE, 50 - len(nodes) // 125)
    wanted = max(MINIMUM_NODES_TO_SCORE, len(nodes) * percentage // 100)
    if len(feasible) <= wanted:
        return feasible, cursor
    by_name = sorted((nodes.name(int(row)), int(row)) for row in feasible)
    start = cursor % len(by_name)
    chosen = sorted(row for _, row in (by_name + by_name)[start : start + wanted])
    return np.array(chosen, dtype=np.int64), start + wanted
