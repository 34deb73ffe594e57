"""Why pods are where they are: the grounds of schedulers' placements.

Each attempt is decided once more beforehand, in full and without side effects. That takes time, so the number is
limited.
"""

from __future__ import annotations

import msgspec
import numpy as np

from podium.cluster.view import View
from podium.controllers.scheduling.attempts import OnAttempt
from podium.controllers.scheduling.pod_reports import reasons_of
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.decide.placement import Placement, place, tried_first
from podium.framework.runner import Runner
from podium.framework.scoring import Score
from podium.framework.verdicts import PluginError

MOST_PLACEMENTS = 5_000
"""The number of attempts that are recorded."""

MOST_ROWS = 2_500_000
"""The number of nodes that are evaluated for that, summed over the attempts."""


class PlacementGrounds(msgspec.Struct, frozen=True):
    """Why a pod went to a `node`: it fitted `fitting` of `nodes`; the others refused it for the `reasons`.

    `fitting` is None if the node was tried first, as reserved for the pod, and no other was. `total` is the node's
    weighted score, None if nothing had to be compared; `next_node` is the best of the others, or "", with its total.
    `scores` are empty if nodes were not scored.
    """

    node: str
    nodes: int
    fitting: int | None
    reasons: str
    total: int | None = None
    next_node: str = ""
    next_total: int = 0
    scores: tuple[Score, ...] = ()


class PlacementLog:
    """The grounds of a run's first placements, by uid; `left_out` counts attempts that were not recorded.

    `then` is called before each attempt, too.
    """

    def __init__(self, seed: int = 0, then: OnAttempt | None = None) -> None:
        self._then = then
        self.found: dict[str, PlacementGrounds] = {}
        self.left_out = 0
        self._seed = seed
        self._attempts = 0
        self._rows = 0

    def on_attempt(self, queued: QueuedPod, runner: Runner) -> None:
        """Record the attempt at a pod that is about to begin."""
        if self._then is not None:
            self._then(queued, runner)
        pod, nodes = queued.record, len(runner.cluster.nodes)
        if self._attempts >= MOST_PLACEMENTS or self._rows + nodes > MOST_ROWS:
            self.left_out += 1
            return
        self._attempts += 1
        self._rows += nodes
        try:
            placement = place(runner, pod, self._seed)
            if placement.row is None:
                return
            self.found[pod.uid] = _grounds(runner, placement, placement.row)
        except PluginError:
            # The attempt itself reports the error.
            return


def _grounds(runner: Runner, placement: Placement, row: int) -> PlacementGrounds:
    nodes, feasible, totals = runner.cluster.nodes, placement.feasible, placement.totals
    name = nodes.name(row)
    if name in tried_first(runner.cluster, placement.pod) and placement.pre_filter.rows is None and totals is None:
        return PlacementGrounds(name, len(nodes), None, "")
    reasons = ", ".join(reasons_of(placement, len(nodes)))
    fitting = len(placement.outcome.feasible)
    if totals is None:
        return PlacementGrounds(name, len(nodes), fitting, reasons)
    taken = int(np.flatnonzero(feasible == row)[0])
    others = totals.copy()
    others[taken] = -1
    best = others.max()
    next_node = min(nodes.name(int(feasible[place])) for place in np.flatnonzero(others == best))
    rated = runner.scoring.rated(placement.state, placement.pod, View(runner.cluster, feasible))
    scores = tuple(each.at(taken) for each in rated)
    return PlacementGrounds(name, len(nodes), fitting, reasons, int(totals[taken]), next_node, int(best), scores)
