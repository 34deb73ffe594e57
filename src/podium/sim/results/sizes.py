"""What nodes offer and what pods ask for: the sizes of what a run is about, for whoever draws it."""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.resize import effective_spec
from podium.api.resource_requests import node_allocatable, pod_requests
from podium.sim.results.holdings import Amounts


class Sizes:
    """Takes in what comes. Equal amounts are one object, so that a pod costs an entry in a dictionary."""

    def __init__(self) -> None:
        self.requests: dict[str, Amounts] = {}
        """By uid, what each pod that was ever there asked for when it was first seen."""
        self.offers: dict[str, Amounts] = {}
        """By name, what each node that was ever there offered last."""
        self.labels: dict[str, Mapping[str, str]] = {}
        """By name, the labels that each such node had last."""
        self._known: dict[tuple[tuple[str, int], ...], Amounts] = {}
        # The identities of the amounts that are known, by which those that come again are found.
        self._identities: set[int] = set()

    def pod_came(self, pod: Pod) -> None:
        """A pod is there."""
        self.requests[pod.metadata.uid] = self._one(pod_requests(effective_spec(pod)))

    def node_changed(self, node: Node) -> None:
        """A node is there, or another than before."""
        self.offers[node.metadata.name] = self._one(node_allocatable(node.status))
        self.labels[node.metadata.name] = node.metadata.labels

    def _one(self, amounts: Amounts) -> Amounts:
        if id(amounts) in self._identities:
            return amounts
        known = self._known.setdefault(tuple(amounts.items()), amounts)
        self._identities.add(id(known))
        return known
