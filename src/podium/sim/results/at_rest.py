"""The result of a run in which nothing happens after its first instant, known without playing it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TypeVar

from podium.sim.results.result import Result
from podium.sim.sim_event import seconds

R = TypeVar("R", bound=Result)

_HOUR = 3600 * 10**9


def kept(result: R) -> R:
    """The result of a simulation as it is, which stays so when the simulation goes on."""
    measures, placements = deepcopy(result.measures), dict(result.placements)
    return replace(result, events=list(result.events), measures=measures, placements=placements)


def lasting(result: R, end_ns: int) -> R:
    """What a run comes to whose result at its start this is, if all stays as it is up to that time.

    What is `kept` may be handed over once.
    """
    measures = result.measures
    for workload in measures.workloads:
        workload.pass_time(end_ns)
    for budget in measures.budgets:
        budget.pass_time(end_ns)
    lasted_ns = end_ns - measures.start_ns
    nodes = measures.series[-1][1].nodes
    summary = {**result.summary, "end": seconds(lasted_ns), "nodeHours": round(nodes * lasted_ns / _HOUR, 6)}
    return replace(result, summary=summary, measures=replace(measures, end_ns=end_ns))
