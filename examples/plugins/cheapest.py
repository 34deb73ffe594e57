"""A score: cheap nodes first, by a label with the price. In the simple form, and in the array form."""

from __future__ import annotations

import numpy as np

from podium.plugin import CycleState, Int64s, NodeView, PodRecord, Scope, View, default_normalize

PRICE = "example.com/cents-an-hour"


def cents(price: str | None) -> int:
    """Return the price of a node; 0 without a numeric label."""
    return int(price) if price is not None and price.isdecimal() else 0


class Cheapest:
    """Asks one node after the other."""

    name = "Cheapest"
    scope = Scope.NODE

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int:
        """Return the price."""
        return cents(node.labels.get(PRICE))

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        """0 for the dearest node, 100 for one that costs nothing."""
        return default_normalize(scores, reverse=True)


class CheapestByRows:
    """Asks all nodes at once."""

    name = "Cheapest"
    scope = Scope.NODE

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """Return the prices: parsed once for each value of the label, then looked up for each row."""
        values = view.cluster.nodes.labels(PRICE).values
        prices = np.array([cents(value) for value in values], dtype=np.int64)
        found: Int64s = prices[view.codes(PRICE)]
        return found

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        """0 for the dearest node, 100 for one that costs nothing."""
        return default_normalize(scores, reverse=True)
