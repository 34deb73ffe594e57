"""What extenders say of the nodes that passed the filters.

Source: pkg/scheduler/schedule_one.go (findNodesThatFitPod, findNodesThatPassExtenders, prioritizeNodes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.framework.extenders import EXTENDER, Extenders
from podium.framework.runner import Runner
from podium.framework.status import SUCCESS, Status, unresolvable
from podium.framework.verdicts import Outcome

# Of a node that an extender leaves out without a word (NodeToStatus' status of absent nodes).
_LEFT_OUT = unresolvable()


@dataclass(frozen=True, slots=True)
class Extended:
    """The outcome with the extenders' refusals, and the rows that they leave, ascending."""

    outcome: Outcome
    feasible: Int64s
    error: str = ""


def filter_by_extenders(
    runner: Runner, extenders: Extenders, pod: PodRecord, outcome: Outcome, rows: Int64s, feasible: Int64s
) -> Extended:
    """Ask about ``feasible`` rows; ``outcome`` is the filters' answer for ``rows``, both ascending.

    What an extender says of other nodes that were looked at stands in place of what was said before. Where none is
    left, those that nobody asked about (outside the sample) are none for preemption either.
    """
    nodes = runner.cluster.nodes
    row_of = {nodes.name(row): row for row in feasible.tolist()}
    found = extenders.filter(pod, list(row_of))
    if found.error:
        return Extended(outcome, feasible[:0], found.error)
    left = {row_of[name] for name in found.left}
    refused = {row: found.refused.get(name, _LEFT_OUT) for name, row in row_of.items() if row not in left}
    if not left:
        refused = dict.fromkeys(rows[outcome.feasible].tolist(), _LEFT_OUT) | refused
    looked_at = set(rows.tolist()) if found.refused else set()
    for name, status in found.refused.items():
        row = nodes.row_of.get(name)
        if row in looked_at and row not in left:
            refused[row] = status
    if not refused:
        return Extended(outcome, feasible)
    kept = np.array([row for row in feasible.tolist() if row in left], dtype=np.int64)
    return Extended(_with(runner, outcome, rows, refused), kept)


def add_priorities(runner: Runner, extenders: Extenders, pod: PodRecord, feasible: Int64s, totals: Int64s) -> None:
    """Add what extenders rate the nodes in ``feasible`` with to their ``totals``."""
    names = [runner.cluster.nodes.name(row) for row in feasible.tolist()]
    scores = extenders.prioritize(pod, names)
    if scores:
        totals += np.array([scores.get(name, 0) for name in names], dtype=np.int64)


def _with(runner: Runner, outcome: Outcome, rows: Int64s, refused: dict[int, Status]) -> Outcome:
    """A copy of an outcome, which may be kept for others, with refusals for some rows."""
    statuses = [SUCCESS, *dict.fromkeys(refused.values())]
    codes = {status: code for code, status in enumerate(statuses)}
    index = len(runner.profile.filter) + 1
    extended = Outcome.of(outcome.refused.copy(), dict(outcome.decoders))
    extended.decoders[index] = (EXTENDER, statuses.__getitem__)
    for row, status in refused.items():
        extended.refused[np.searchsorted(rows, row)] = codes[status] + (index << Outcome.SHIFT)
    return extended
