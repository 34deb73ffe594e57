"""Which of the candidates for preemption is taken: by kube-scheduler's criteria, or by a stated cost.

Source: pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from podium.cluster.arrays import Int64s, stable_hash
from podium.cluster.nodes import NodeColumns
from podium.decide.preempting.costs.criteria import AFFINITY, Column
from podium.decide.preempting.costs.facts import Facts
from podium.decide.preempting.costs.victim_cost import VictimCost
from podium.decide.preempting.costs.victim_sets import VictimSets
from podium.decide.preempting.trial_table import AFFINITY_KEPT, CRITERIA, TrialTable
from podium.framework.handle import Handle

_SUM = CRITERIA.index("smallest sum of victims' priorities")
_NUMBER = CRITERIA.index("fewest victims")


def best_by_criteria(table: TrialTable) -> tuple[Int64s, str]:
    """The positions that the criteria leave, and the last criterion that told them apart (pickOneNodeForPreemption)."""
    left, deciding = table.candidates, ""
    for name, values in zip(table.criteria_names, table.criteria, strict=True):
        if len(left) < 2:
            break
        found = values[left]
        best = left[found == found.min()]
        if len(best) < len(left):
            others = np.setdiff1d(left, best, assume_unique=True)
            left, deciding = best, _effective(name, table, best, others)
    return left, deciding


def _effective(criterion: str, table: TrialTable, best: Int64s, others: Int64s) -> str:
    """What people call the criterion that told the best candidates from others.

    The sum of priorities is shifted so that it is smaller wherever there are fewer victims.
    """
    if table.is_stated or criterion != CRITERIA[_SUM]:
        return criterion
    numbers = table.criteria[table.criteria_names.index(CRITERIA[_NUMBER])]
    return CRITERIA[_NUMBER] if numbers[best].max() < numbers[others].min() else criterion


def limited(nodes: NodeColumns, table: TrialTable, minimum: tuple[int, int], examined: int, salt: str) -> TrialTable:
    """Leave as many candidates as upstream would have found (DryRunPreemption, GetOffsetAndNumCandidates).

    From some node on, in order of names, until there are enough and one of them violates no budget.
    """
    percentage, absolute = minimum
    wanted = min(max(examined * percentage // 100, absolute), examined)
    order = sorted(table.candidates.tolist(), key=lambda position: nodes.name(int(table.rows[position])))
    if len(order) <= wanted:
        return table
    offset = stable_hash(salt) % len(order)
    order = order[offset:] + order[:offset]
    kept = wanted
    while kept < len(order) and all(table.budget_violations[position] for position in order[:kept]):
        kept += 1
    return table.only(np.array(sorted(order[:kept]), dtype=np.int64))


def cheapest(runner: Handle, table: TrialTable, cost: VictimCost) -> tuple[Int64s, str]:
    """The positions that cost least, and the last criterion that told some apart."""
    tied, deciding = cost.cheapest(_victim_sets(runner, table))
    return table.candidates[tied], deciding


def with_stated_cost(runner: Handle, table: TrialTable, cost: VictimCost) -> TrialTable:
    """The trials with what their victims cost."""
    found = np.zeros((len(cost.criteria), len(table.rows)), dtype=np.int64)
    if len(table.candidates):
        found[:, table.candidates] = cost.columns(_victim_sets(runner, table))
    violations = table.budget_violations
    return replace(table, criteria=found, criteria_names=cost.words, violations=violations, is_stated=True)


def columns_of(table: TrialTable, cost: VictimCost) -> tuple[Column, ...]:
    """What is told of candidates where their cost is stated."""
    keeps_partners = table.is_stated and table.criteria_names[0] == AFFINITY_KEPT
    return (AFFINITY, *cost.criteria) if keeps_partners else cost.criteria


def _victim_sets(runner: Handle, table: TrialTable) -> VictimSets:
    starts, slots = table.victim_slots(table.candidates)
    return VictimSets(Facts(runner), starts, slots, table.budget_violations[table.candidates])
