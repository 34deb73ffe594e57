"""The placement of a pod: filter the nodes, score the feasible ones, and take one of the best; and nominations.

Ties: kube-scheduler picks at random. Podium orders equals by the hash of their names and takes the one at the index
that a hash of the seed and the pod's uid yields, modulo their number. Different pods therefore get different nodes,
runs are repeatable, and equals kept in that order need not be examined one by one (`podium.framework.cache.rankings`).

Sampling: Podium examines the nodes that kube-scheduler does with one worker (`parallelism: 1`), one after the other.
With more workers, those that finish first decide which of the nodes that are examined at the same time count.

Source: pkg/scheduler/schedule_one.go (schedulePod, findNodesThatFitPod, selectHost, numFeasibleNodesToFind,
findNodesThatPassFilters); framework/preemption (DryRunPreemption, findCandidates) and
framework/plugins/defaultpreemption (GetOffsetAndNumCandidates); pod-preemption.md, "Changes to the preemption
workflow": when a pod is nominated, lower nominations on its node are checked again. kube-scheduler clears all of them
(framework/preemption/executor.go, getLowerPriorityNominatedPods); the design clears those that no longer fit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from podium.cluster.arrays import Bools, Int64s, UInt64s, stable_hash
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import NodeColumns
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.preempting.reprieve import TrialTable
from podium.framework.cache.rankings import is_best_of_some
from podium.framework.extenders import EXTENDER, Extenders
from podium.framework.handle import CycleState
from podium.framework.pre_filters import PreFiltered
from podium.framework.runner import Runner
from podium.framework.verdicts import SUCCESS, Outcome, PluginError, Status, unresolvable

MINIMUM_NODES = 100
MINIMUM_PERCENTAGE = 5


def nodes_to_find(percentage: int | None, nodes: int) -> int:
    """Return after how many feasible nodes out of ``nodes`` the search ends; ``percentage`` 0 depends on the number.

    None finds all of them.
    """
    if percentage is None or nodes < MINIMUM_NODES:
        return nodes
    return max(MINIMUM_NODES, nodes * (percentage or max(MINIMUM_PERCENTAGE, 50 - nodes // 125)) // 100)


class Examined(NamedTuple):
    """The result of a search: the feasible rows to score, ascending, and all rows that were examined, in order.

    ``error`` is the first failure of a filter, which ends the search.
    """

    feasible: Int64s
    rows: Int64s
    error: Status | None = None


def rolled(order: Int64s, start: int) -> Int64s:
    """Return ``order`` from index ``start`` on, and then what is before it."""
    start %= max(len(order), 1)
    return np.concatenate((order[start:], order[:start]))


def examine(order: Int64s, outcome: Outcome, rows: Int64s, wanted: int) -> Examined:
    """Search the rows of ``order`` until ``wanted`` are feasible.

    ``outcome`` is the filters' answer for ``rows``, ascending, which contain those of ``order``. kube-scheduler ends
    the search when it finds one feasible node more.
    """
    if not len(order):
        return Examined(order, order)
    # The rows are most often all rows, whose positions are their numbers.
    refused = outcome.refused[order if rows[-1] == len(rows) - 1 else np.searchsorted(rows, order)]
    feasible = np.flatnonzero(refused == 0)
    number = int(feasible[wanted]) if len(feasible) > wanted else len(order)
    error = None
    failed = set(rows[outcome.failed].tolist()) if outcome.has_errors else ()
    at = next((at for at, row in enumerate(order[:number].tolist()) if row in failed), None) if failed else None
    if at is not None:
        number, error = at, outcome.status_of(refused.item(at))
    return Examined(np.sort(order[feasible[: np.searchsorted(feasible, number)]]), order[:number], error)


def limited_candidates(
    nodes: NodeColumns, table: TrialTable, outcome: Outcome, minimum: tuple[int, int], lot: int, first: int | None
) -> TrialTable:
    """Leave the candidates that kube-scheduler finds on the nodes of ``table`` before it has enough of them.

    ``minimum`` is the percentage of these nodes and the number that are enough, if the victims of one of them violate
    no budget; ``lot`` stands for kube-scheduler's random numbers. kube-scheduler tries the nodes in the random order of
    a Go map; or in that of `NodeColumns.tree_order`, from a random one on, if a PreFilter plugin rejected the pod. The
    search begins with the row ``first``, that of a recording, if there is one: another search would not find it.
    """
    tried = len(table.rows)
    enough = enough_candidates(minimum, tried)
    if len(table.candidates) <= enough:
        return table
    if int(outcome.refused[table.rows[0]]) >> Outcome.SHIFT:
        order = np.argsort(splitmix(nodes.name_hash[table.rows] ^ np.uint64(lot)), kind="stable")
    else:
        by_tree = nodes.tree_order()
        order = rolled(np.searchsorted(table.rows, by_tree[np.isin(by_tree, table.rows)]), lot)
    order = order[np.isin(order, table.candidates)]
    if first is not None:
        order = rolled(order, int(np.argmax(table.rows[order] == first)))
    return table.only(np.sort(until_enough(order, table.budget_violations > 0, enough)))


def enough_candidates(minimum: tuple[int, int], tried: int) -> int:
    """Return after how many candidates on ``tried`` nodes the search for them may end."""
    percentage, absolute = minimum
    return min(max(tried * percentage // 100, absolute), tried)


def until_enough(order: Int64s, violates: Bools, enough: int) -> Int64s:
    """Return the first ``enough`` candidates of ``order``, and further ones until one of them violates no budget.

    ``violates`` is ``[candidates]``: whether victims violate a budget. Beyond ``enough`` that do, more are dropped.
    """
    of_order = violates[order]
    end = len(order) if of_order.all() else max(int(np.argmin(of_order)) + 1, enough)
    order, of_order = order[:end], of_order[:end]
    return np.concatenate((order[~of_order][:enough], order[of_order][:enough]))


def splitmix(values: UInt64s) -> UInt64s:
    """Return well-distributed numbers, the same for the same values (splitmix64)."""
    mixed: UInt64s = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


_NO_ROWS: Int64s = np.empty(0, dtype=np.int64)
_NO_VERDICTS = Outcome(0)


class Placement(msgspec.Struct, frozen=True, eq=False):
    """The result of one scheduling attempt.

    ``rows`` were examined, ``outcome`` is the filters' answer for each. ``feasible`` are the rows where the pod fits,
    ``totals`` their scores (None if there was nothing to compare), and ``row`` the chosen one, None for none.
    ``cursor`` is where the search for the next pod starts, modulo the number of nodes. ``error`` is the failure of a
    filter, which prevents a placement.
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


def rejecting_plugins(placement: Placement) -> list[str]:
    """Return the plugins that rejected the pod on some node, or altogether."""
    status = placement.pre_filter.status
    if status is not SUCCESS and not status.is_success:
        return [status.plugin]
    return [*placement.pre_filter.plugins, *placement.outcome.summary()[0]]


def full_outcome(cluster: Cluster, placement: Placement) -> Outcome:
    """Return the filters' answer for every row, including those that PreFilters rejected or left out."""
    rejected = placement.pre_filter.status
    is_success = rejected is SUCCESS or rejected.is_success
    if is_success and placement.pre_filter.rows is None:
        return placement.outcome
    rest = placement.pre_filter.left_out if is_success else rejected
    outcome = Outcome(cluster.nodes.count)
    outcome.refuse_all(rest, cluster.nodes.present[: cluster.nodes.count])
    if is_success:
        outcome.refused[placement.rows] = placement.outcome.refused
        outcome.decoders.update(placement.outcome.decoders)
    return outcome


def place(
    runner: Runner,
    pod: PodRecord,
    seed: int = 0,
    *,
    nominated_first: bool = True,
    cursor: int | None = None,
    detailed: bool = True,
    among: Int64s | None = None,
) -> Placement:
    """Find a node for ``pod``. The same pod, cluster, seed and cursor give the same placement; nothing is changed.

    ``nominated_first``: the nodes of `tried_first` come before all others. ``cursor`` is that of the placement before,
    by default the cluster's; it counts if the search for nodes may end early (`podium.decide.placement`). ``among`` are
    the rows, ascending, that may be used; None for all. Without ``detailed`` the result may contain only the row of a
    pod that fits somewhere, found without a full scan (`podium.framework.cache.rankings`).
    """
    state = CycleState()
    every = runner.pre_filter(state, pod)
    pre_filter = every if among is None else every.within(among)
    nodes = runner.cluster.nodes
    cursor = nodes.search_start if cursor is None else cursor
    if pre_filter.status is not SUCCESS and not pre_filter.status.is_success:
        return Placement(pod, state, pre_filter, _NO_ROWS, Outcome(0), _NO_ROWS, None, None, cursor)
    extenders = runner.extenders_of(pod)
    if nominated_first and (pod.nominated_node_name or runner.cluster.replacements.awaited):
        tried = _try_first(runner, extenders, state, pod, pre_filter, cursor, detailed)
        if tried is not None:
            return tried
    if not detailed and pre_filter.rows is None and extenders is None:
        ranked = _ranked(runner, state, pod, seed, cursor)
        if ranked is not None:
            return Placement(pod, state, pre_filter, _NO_ROWS, _NO_VERDICTS, _NO_ROWS, None, *ranked)
    outcome = runner.filter(state, pod, pre_filter.rows)
    rows = nodes.all_rows() if pre_filter.rows is None else pre_filter.rows
    nominated = pod.nominated_node_name if nominated_first else ""
    feasible, cursor, error = _sample(runner, nominated, outcome, rows, among, cursor)
    if error is not None:
        return Placement(pod, state, pre_filter, rows, outcome, _NO_ROWS, None, None, cursor, error.message)
    if pre_filter.rows is None:
        runner.rankings.learn(pod, fits=len(feasible) > 0)
    if extenders is not None and len(feasible):
        outcome, feasible, problem = filter_by_extenders(runner, extenders, pod, outcome, rows, feasible)
        if problem:
            return Placement(pod, state, pre_filter, rows, outcome, feasible, None, None, cursor, problem)
    totals, row = _best(runner, extenders, state, pod, feasible, seed) if len(feasible) else (None, None)
    row = _recorded_choice(runner, state, pod, rows[outcome.feasible], row)
    return Placement(pod, state, pre_filter, rows, outcome, feasible, totals, row, cursor)


def tried_first(cluster: Cluster, pod: PodRecord) -> tuple[str, ...]:
    """Return the nodes that are tried before all others: the nominated one, then the hinted one.

    The hint is named by the eviction of the pod that this one replaces (`podium.api.avoid_list`); kube-scheduler
    tries a node of its own guess in the same way for similar pods in a row (GetNodeHint).
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
    detailed: bool,
) -> Placement | None:
    """Return the placement on a node of `tried_first` that the pod fits, None for none (evaluateNominatedNode).

    If an extender does not answer, all nodes are examined.
    """
    for node_name in tried_first(runner.cluster, pod):
        row = runner.cluster.nodes.row_of.get(node_name)
        if row is None or (pre_filter.rows is not None and row not in pre_filter.rows):
            continue
        fits = None if detailed or extenders is not None else runner.kept.fits(state, pod, row)
        if fits:
            return Placement(pod, state, pre_filter, _NO_ROWS, _NO_VERDICTS, _NO_ROWS, None, row, cursor)
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
) -> tuple[Int64s | None, int]:
    """Return the total scores of the feasible rows, None for a single row, and the row to choose."""
    if len(feasible) == 1:
        return None, int(feasible[0])
    whole = len(feasible) == runner.cluster.nodes.count
    view = View(runner.cluster) if whole else View(runner.cluster, feasible)
    runner.scoring.prepare(state, pod, view)
    totals = runner.scoring.totals(state, pod, view)
    if extenders is not None:
        names = [runner.cluster.nodes.name(row) for row in feasible.tolist()]
        scores = extenders.prioritize(pod, names)
        totals += np.array([scores.get(name, 0) for name in names], dtype=np.int64)
    return totals, pick(runner.cluster.nodes, feasible, pod.uid, seed, totals == totals.max())


def recorded_row(cluster: Cluster, pod: PodRecord) -> int | None:
    """Return the row that a recording chooses for a pod, None for none."""
    uid, node_name = cluster.recorded_choice
    return cluster.nodes.row_of.get(node_name) if uid == pod.uid else None


def _recorded_choice(
    runner: Runner, state: CycleState, pod: PodRecord, feasible: Int64s, chosen: int | None
) -> int | None:
    """Return the recorded row if some search among the ``feasible`` ones finds none that is better, else ``chosen``."""
    row = recorded_row(runner.cluster, pod)
    if row is None or row == chosen or row not in feasible:
        return chosen
    nodes, view = runner.cluster.nodes, View(runner.cluster, feasible)
    runner.scoring.prepare(state, pod, view)
    totals = runner.scoring.totals(state, pod, view)
    order = nodes.tree_order()
    order = order[np.isin(order, feasible)]
    totals = totals[np.searchsorted(feasible, order)]
    return row if is_best_of_some(order, totals, row, _feasible_nodes_to_find(runner, len(nodes))) else chosen


def _ranked(runner: Runner, state: CycleState, pod: PodRecord, seed: int, cursor: int) -> tuple[int, int] | None:
    """Return the row for a pod, if a ranking has one, and where the next search starts."""
    recorded = recorded_row(runner.cluster, pod) if runner.cluster.recorded_choice[1] else None
    if not runner.is_sampling:
        row = runner.rankings.best(state, pod, partial(lot, pod.uid, seed)) if recorded is None else None
        return None if row is None else (row, cursor)
    totals, order = runner.rankings.totals(state, pod), runner.cluster.nodes.tree_order()
    wanted = _feasible_nodes_to_find(runner, len(order))
    found = None if totals is None else totals.best_of(rolled(order, cursor), wanted, lot(pod.uid, seed), recorded)
    return None if found is None else (found[0], (cursor + found[1]) % len(order))


def _feasible_nodes_to_find(runner: Runner, number: int) -> int:
    """Return after how many feasible nodes out of ``number`` the search ends."""
    is_any_right = not runner.profile.score and runner.extenders is None
    return 1 if is_any_right else nodes_to_find(runner.profile.percentage_of_nodes_to_score, number)


def _sample(
    runner: Runner, nominated_node: str, outcome: Outcome, rows: Int64s, among: Int64s | None, cursor: int
) -> tuple[Int64s, int, Status | None]:
    """Return the feasible rows to score, where the next search starts, and the error of a filter or None.

    ``outcome`` is the filters' answer for ``rows``, and ``among`` are the rows of the nodes that count (None: all). The
    node ``nominated_node`` ("" for none) was examined before, and rejected.
    """
    if not runner.is_sampling:
        return rows[outcome.feasible], cursor, outcome.error()
    order = runner.cluster.nodes.tree_order()
    order = order if among is None else order[np.isin(order, among)]
    searched = order if len(rows) >= len(order) else order[np.isin(order, rows)]
    found = examine(rolled(searched, cursor), outcome, rows, _feasible_nodes_to_find(runner, len(searched)))
    number = len(found.rows)
    row = runner.cluster.nodes.row_of.get(nominated_node)
    if row is not None and (row in found.feasible or row not in found.rows):
        # kube-scheduler counts the nodes that it rejected, and those that it found.
        number += not (outcome.has_errors and row in rows[outcome.failed])
    return found.feasible, (cursor + number) % max(len(order), 1), found.error


# The status of a node that an extender leaves out without a reason (NodeToStatus' status of absent nodes).
_LEFT_OUT = unresolvable()


def filter_by_extenders(
    runner: Runner, extenders: Extenders, pod: PodRecord, outcome: Outcome, rows: Int64s, feasible: Int64s
) -> tuple[Outcome, Int64s, str]:
    """Return the outcome with the extenders' rejections, the rows that they leave (ascending), and their error or "".

    They are asked about the ``feasible`` rows; ``outcome`` is the filters' answer for ``rows``, both ascending. An
    extender's answer about other examined nodes replaces the present one. If none is left, nodes outside the sample
    are no candidates for preemption either.
    """
    nodes = runner.cluster.nodes
    row_of = {nodes.name(row): row for row in feasible.tolist()}
    found = extenders.filter(pod, list(row_of))
    if found.error:
        return outcome, feasible[:0], found.error
    left = {row_of[name] for name in found.left}
    refused = {row: found.refused.get(name, _LEFT_OUT) for name, row in row_of.items() if row not in left}
    if not left:
        refused = dict.fromkeys(rows[outcome.feasible].tolist(), _LEFT_OUT) | refused
    examined = set(rows.tolist()) if found.refused else set()
    for name, status in found.refused.items():
        row = nodes.row_of.get(name)
        if row in examined and row not in left:
            refused[row] = status
    if not refused:
        return outcome, feasible, ""
    kept = np.array([row for row in feasible.tolist() if row in left], dtype=np.int64)
    return _with(runner, outcome, rows, refused), kept, ""


def _with(runner: Runner, outcome: Outcome, rows: Int64s, refused: dict[int, Status]) -> Outcome:
    """Return a copy of an outcome, which may be cached, with rejections of some rows."""
    statuses = [SUCCESS, *dict.fromkeys(refused.values())]
    codes = {status: code for code, status in enumerate(statuses)}
    index = len(runner.profile.filter) + 1
    extended = Outcome.of(outcome.refused.copy(), dict(outcome.decoders))
    extended.decoders[index] = (EXTENDER, statuses.__getitem__)
    for row, status in refused.items():
        extended.refused[np.searchsorted(rows, row)] = codes[status] + (index << Outcome.SHIFT)
    return extended


def lot(uid: str, seed: int) -> int:
    """Return a pod's draw: out of n equals it takes the one in place ``lot % n``."""
    return stable_hash(f"{seed}/{uid}")


def pick(nodes: NodeColumns, rows: Int64s, uid: str, seed: int, wanted: Bools | None = None) -> int:
    """Return one of ``rows`` (at least one), or of those ``wanted``: the one in the place of the pod's lot.

    Of rows with equal hashes, which do not occur in practice, the first is taken.
    """
    equals = rows if wanted is None else rows[wanted]
    if len(equals) == 1:
        return int(equals[0])
    place = lot(uid, seed) % len(equals)
    hashes = nodes.name_hash[equals]
    return int(equals[(hashes == np.partition(hashes, place)[place]).argmax()])


def lower_nominations(cluster: Cluster, node_name: str, pod: PodRecord | None) -> list[PodRecord]:
    """Return the pods nominated to a node that keep no room from ``pod`` there, the highest priority first.

    None for ``pod`` returns all that are nominated to the node. A pod over which a plugin fails keeps its nomination.
    """
    nominated = cluster.nominations.on(node_name)
    return [other for other in nominated if pod is None or not _keeps_room(cluster, other, pod)]


def _keeps_room(cluster: Cluster, nominated: PodRecord, pod: PodRecord) -> bool:
    try:
        return nominated.uid == pod.uid or cluster.nominations.counts_for(nominated, pod)
    except PluginError:
        return True


def unfit_nominations(
    cluster: Cluster, runners: Mapping[str, Runner], node_name: str, taker: PodRecord | None, leaving: frozenset[str]
) -> list[PodRecord]:
    """Return the pods nominated to a node that keep no room from ``taker`` and no longer fit, highest priority first.

    Pods of ``leaving`` (uids), and preempted pods that terminate, count as gone. A pod found unfit does not count for
    those below it. A pod over which a plugin fails keeps its nomination. The nominations are unchanged afterwards.
    """
    nominations, lower = cluster.nominations, lower_nominations(cluster, node_name, taker)
    row = cluster.nodes.row_of.get(node_name)
    if row is None:
        return lower
    unfit: list[PodRecord] = []
    victims = dict(nominations.victims())
    try:
        for pod in lower:
            if not _may_fit(runners[pod.scheduler_name], pod, row, leaving):
                unfit.append(pod)
                nominations.remove(pod.uid)
    finally:
        for pod in unfit:
            nominations.put(pod, node_name, victims.get(pod.uid, ()))
    return unfit


def _may_fit(runner: Runner, pod: PodRecord, row: int, leaving: frozenset[str]) -> bool:
    cluster = runner.cluster
    gone = [other for other in cluster.pods_on(row) if other.uid in leaving or cluster.is_ending_victim(other)]
    try:
        return fits_without(runner, pod, row, gone)
    except PluginError:
        return True


def fits_without(runner: Runner, pod: PodRecord, row: int, gone: Collection[PodRecord]) -> bool:
    """Return whether the pod would fit the node in ``row`` without ``gone``, beside nominated pods.

    The pod's own nomination does not count. Raises PluginError if a plugin fails.
    """
    state = CycleState()
    pre_filter = runner.pre_filter(state, pod)
    if not pre_filter.status.is_success or (pre_filter.rows is not None and row not in pre_filter.rows):
        return False
    return runner.fits_without(state, pod, runner.cluster.nodes.name(row), gone)
