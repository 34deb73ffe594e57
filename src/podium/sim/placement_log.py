"""Why pods are where they are: what schedulers went by when they placed them, taken down while they do.

Each attempt is decided once more beforehand, in full, which changes nothing and takes its time: so much is taken down
and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.cluster.view import View
from podium.decide.placement import Placement, place, tried_first
from podium.framework.errors import PluginError
from podium.framework.runner import Runner
from podium.framework.scoring import Score
from podium.machines.scheduling.fit_error import reasons_of
from podium.machines.scheduling.queue.queued_pod import QueuedPod

MOST_PLACEMENTS = 5_000
"""So many attempts are taken down at most."""

MOST_ROWS = 2_500_000
"""So many nodes are looked at for that at most, those of one attempt after the other added up."""


@dataclass(frozen=True, slots=True)
class PlacementGrounds:
    """Why a pod went to a `node`: it fitted `fitting` of `nodes`, the others refused it for the `reasons`.

    `fitting` is None where the node was tried first, its room being the pod's, and no other was looked at. `total` is
    the node's sum of weighted scores, None where nothing had to be compared; `next_node` is the best of the others, ""
    for none, with its own sum. `scores` are there where nodes were rated.
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
    """The grounds of the first placements of a run, by uid; `left_out` counts attempts that were not taken down."""

    def __init__(self, seed: int = 0) -> None:
        self.found: dict[str, PlacementGrounds] = {}
        self.left_out = 0
        self._seed = seed
        self._attempts = 0
        self._rows = 0

    def attempted(self, queued: QueuedPod, runner: Runner) -> None:
        """An attempt at a pod begins."""
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
            # The attempt itself says what went wrong.
            return


def _grounds(runner: Runner, placement: Placement, row: int) -> PlacementGrounds:
    nodes, feasible, totals = runner.cluster.nodes, placement.feasible, placement.totals
    name = nodes.name(row)
    if name in tried_first(runner.cluster, placement.pod) and placement.pre_filter.rows is None and totals is None:
        return PlacementGrounds(name, len(nodes), None, "")
    reasons = ", ".join(reasons_of(placement, len(nodes)))
    if totals is None:
        return PlacementGrounds(name, len(nodes), len(feasible), reasons)
    taken = int(np.flatnonzero(feasible == row)[0])
    others = totals.copy()
    others[taken] = -1
    best = others.max()
    next_node = min(nodes.name(int(feasible[place])) for place in np.flatnonzero(others == best))
    rated = runner.scoring.rated(placement.state, placement.pod, View(runner.cluster, feasible))
    scores = tuple(each.at(taken) for each in rated)
    return PlacementGrounds(name, len(nodes), len(feasible), reasons, int(totals[taken]), next_node, int(best), scores)
