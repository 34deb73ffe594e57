"""A policy of rescheduling: pods leave nodes that cost much, for cheaper ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from msgspec import Meta

from podium.policy import Arguments, Float64s, Picture, PluginContext, Proposal, Relocation, View, read_arguments

PRICE = "example.com/cents-an-hour"


class CostlyNodesArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: a pod on a node of ``centsAnHour`` or more is in quite the wrong place."""

    cents_an_hour: Annotated[int, Meta(ge=1)] = 40


class CostlyNodes:
    """Counts the pods on nodes that cost something, each by how much."""

    name = "CostlyNodes"

    def __init__(self, context: PluginContext) -> None:
        self._args = read_arguments(context.args, CostlyNodesArgs, self.name)

    def objective(self, picture: Picture) -> float:
        """1 for each pod on a node of the price that is quite too high, less on cheaper ones."""
        shares = np.minimum(self._prices(picture) / self._args.cents_an_hour, 1.0)
        costly = np.flatnonzero(shares).tolist()
        return float(sum(shares[row] * len(picture.cluster.pods_on(row)) for row in costly))

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Each pod by itself, those on the dearest nodes first, then by key; any cheaper node will do."""
        prices = self._prices(picture)
        costly = [pod for pod in picture.movable_pods() if prices[pod.row] > 0]
        for pod in sorted(costly, key=lambda pod: (-prices[pod.row], pod.key)):
            price, node = prices[pod.row], picture.node_name(pod.row)
            reason = f"{node} costs {price:.0f} cents an hour, and others cost less"
            yield Proposal((Relocation(pod, targets=prices < price, preferred=-prices),), reason)

    def _prices(self, picture: Picture) -> Float64s:
        """`[rows]`: what the nodes cost; without a label that is a number, nothing."""
        values = picture.cluster.nodes.labels(PRICE).values
        prices = np.array([float(value) if value is not None and value.isdecimal() else 0.0 for value in values])
        found: Float64s = prices[View(picture.cluster).codes(PRICE)]
        return found
