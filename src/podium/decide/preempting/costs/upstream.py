"""What sets of victims cost, by the criteria in their order: the smaller, the better.

Source: pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.trial_table import CRITERIA

PRIORITY_SHIFT = 2**31
"""Shifts priorities, which may be negative, so that fewer victims always weigh less than more of them."""


def costs_of_lists(cluster: Cluster, starts: Int64s, slots: Int64s, violating: Bools) -> Int64s:
    """``[criteria, lists]``: what `CRITERIA` say of victims, ``slots[starts[i]:starts[i + 1]]``, most important first.

    ``violating`` is ``[slots]``: whose disruption would violate a budget. Of no victims they say 0.
    """
    costs = np.zeros((len(CRITERIA), len(starts) - 1), dtype=np.int64)
    lengths = np.diff(starts)
    some = np.flatnonzero(lengths)
    if not len(some):
        return costs
    table, firsts, lengths = cluster.pods, starts[:-1][some], lengths[some]
    priority = table.priority[slots]
    most_important = priority == np.repeat(priority[firsts], lengths)
    start_ns = np.where(most_important, table.start_ns[slots], np.iinfo(np.int64).max)
    costs[0, some] = np.add.reduceat(violating.astype(np.int64), firsts)
    costs[1, some] = priority[firsts]
    costs[2, some] = np.add.reduceat(priority + PRIORITY_SHIFT, firsts)
    costs[3, some] = lengths
    costs[4, some] = -np.minimum.reduceat(start_ns, firsts)
    return costs


def cost_of(victims: Sequence[PodRecord], budget_violations: int) -> tuple[int, ...]:
    """The same of one list."""
    highest = victims[0].priority
    return (
        budget_violations,
        highest,
        sum(victim.priority + PRIORITY_SHIFT for victim in victims),
        len(victims),
        -min(victim.start_ns for victim in victims if victim.priority == highest),
    )


def at_most(costs: Int64s, limit: Int64s) -> Bools:
    """``[n]``: which of ``[criteria, n]`` costs are as small as a limit, or smaller, the first criterion first."""
    smaller = np.zeros(costs.shape[1], dtype=np.bool_)
    equal = np.ones(costs.shape[1], dtype=np.bool_)
    for values, most in zip(costs, limit, strict=True):
        smaller |= equal & (values < most)
        equal &= values == most
    return smaller | equal
