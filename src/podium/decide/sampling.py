"""The nodes that kube-scheduler examines: for a place, and as candidates for preemption.

Podium decides as kube-scheduler does with one worker (`parallelism: 1`), whose workers examine nodes one after the
other. With more workers, those that finish first decide which of the nodes that are examined at the same time count.

Source: pkg/scheduler/schedule_one.go (numFeasibleNodesToFind, findNodesThatPassFilters); framework/preemption
(DryRunPreemption, findCandidates) and framework/plugins/defaultpreemption (GetOffsetAndNumCandidates).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.cluster.arrays import Bools, Int64s, UInt64s
from podium.cluster.nodes import NodeColumns
from podium.decide.preempting.reprieve import TrialTable
from podium.framework.verdicts import Outcome, Status

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


def turned(order: Int64s, start: int) -> Int64s:
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
    nodes: NodeColumns, table: TrialTable, outcome: Outcome, minimum: tuple[int, int], lot: int
) -> TrialTable:
    """Leave the candidates that kube-scheduler finds on the nodes of ``table`` before it has enough of them.

    ``minimum`` is the percentage of these nodes and the number that are enough, if the victims of one of them violate
    no budget; ``lot`` stands for kube-scheduler's random numbers. kube-scheduler tries the nodes in the random order of
    a Go map; or in that of `NodeColumns.tree_order`, from a random one on, if a PreFilter plugin rejected the pod.
    """
    tried = len(table.rows)
    enough = enough_candidates(minimum, tried)
    if len(table.candidates) <= enough:
        return table
    if int(outcome.refused[table.rows[0]]) >> Outcome.SHIFT:
        order = np.argsort(mixed(nodes.name_hash[table.rows] ^ np.uint64(lot)), kind="stable")
    else:
        by_tree = nodes.tree_order()
        order = turned(np.searchsorted(table.rows, by_tree[np.isin(by_tree, table.rows)]), lot)
    order = order[np.isin(order, table.candidates)]
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


def mixed(values: UInt64s) -> UInt64s:
    """Return well-distributed numbers, the same for the same values (splitmix64)."""
    mixed: UInt64s = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
