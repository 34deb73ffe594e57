"""Nodes that are hardly used: how bad that is, and what would free them.

Source: autoscaler cluster-autoscaler (core/scaledown); descheduler pkg/framework/plugins/nodeutilization
(highnodeutilization.go).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.linear import LinearForm, Movables
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Float64s, Proposal, Relocation
from podium.plugins.rescheduling.parts.node_contents import Amounts, contents_of
from podium.plugins.rescheduling.parts.node_use import NodeUse, guests_on

# A node is freed as a whole, and a plan of so many pods is none.
_MOST_PODS = 100


class FreedNodes:
    """Nodes below a share of what they offer are to be freed.

    Each counts one for itself and one for each of its pods, the less the nearer it is to the share. So that is worth
    most where few pods keep a node that is nearly empty, it is never worth anything to move pods to a node that is less
    used than theirs, and two nodes whose pods come together on one of them always count less than before.
    """

    def __init__(self, threshold: float, max_nodes: int) -> None:
        self._threshold = threshold
        self._max_nodes = max_nodes
        self.use = NodeUse()

    def badness(self, picture: Picture) -> float:
        """How much is in use that should not be."""
        if not self._threshold:
            return 0.0
        return float(self._terms(picture).sum())

    def linear(self, movables: Movables) -> LinearForm:
        """`badness` as a table for each node of the pods that can be on it."""
        if not self._threshold:
            return LinearForm()
        picture, terms = movables.picture, self._terms(movables.picture)
        nodes = picture.cluster.nodes
        count, offered, targets = nodes.count, nodes.allocatable, picture.targets
        guests = {pod.uid for row in range(count) for pod in guests_on(picture.cluster, row)}
        of_pod = {
            pod.uid: (
                pod.uid in guests,
                *(pod.pod_class.requests.get(resource, 0) for resource in range(len(offered))),
            )
            for pod in movables.pods
        }

        def cost(row: int, amounts: Int64s) -> float:
            if not amounts[0] or not targets[row]:
                return 0.0
            has = offered[:, row] > 0
            share = float((amounts[1:][has] / offered[:, row][has]).max(initial=0.0))
            return float(amounts[0] + 1) * max(1 - share / self._threshold, 0.0)

        in_all = np.concatenate([self.use.guests[None, :count], nodes.requested[:, :count]])
        most = np.concatenate([nodes.allowed_pods[None, :count], offered[:, :count]])
        contents = tuple(contents_of(movables, Amounts(of_pod, in_all, most), cost))
        return LinearForm(float(terms.sum()) - sum(float(terms[table.row]) for table in contents), contents=contents)

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """All pods of a node, of the fewest pods first; of equals, of the least used; then by name."""
        if not self._threshold:
            return
        worth, guests, shares = self._terms(picture), self.use.guests, self.use.shares
        rows = np.flatnonzero(worth).tolist()
        rows.sort(key=lambda row: (guests[row], shares[row], picture.node_name(row)))
        looked_into = 0
        for row in rows:
            if looked_into == self._max_nodes:
                return
            proposal = self._proposal(picture, row)
            if proposal is not None:
                looked_into += 1
                yield proposal

    def _terms(self, picture: Picture) -> Float64s:
        use = self.use
        use.look(picture.cluster)
        emptiness = np.maximum(1 - use.shares / self._threshold, 0)
        terms: Float64s = np.where(use.in_use() & picture.targets[: len(emptiness)], (use.guests + 1) * emptiness, 0.0)
        return terms

    def _proposal(self, picture: Picture, row: int) -> Proposal | None:
        """What frees a node as things stand by now; None where some pod of it may not be moved."""
        worth = self._terms(picture)
        leaving = guests_on(picture.cluster, row)
        if not worth[row] or not 0 < len(leaving) <= _MOST_PODS or not all(map(picture.is_movable, leaving)):
            return None
        targets: Bools = self.use.in_use() & picture.targets[: len(worth)]
        targets[row] = False
        name, share = picture.node_name(row), float(self.use.shares[row])
        reason = f"{name} is asked for {share:.0%} of what it offers; without {_pods(len(leaving))} it is free"
        preferred = self.use.shares.copy()
        relocations = (Relocation(pod, targets, preferred) for pod in by_size(picture, leaving))
        return Proposal(tuple(relocations), reason)


def by_size(picture: Picture, pods: list[PodRecord]) -> list[PodRecord]:
    """The pods, those first that it is hardest to find a place for: the largest; of equals, by key, then uid."""
    nodes = picture.cluster.nodes
    largest = nodes.allocatable[:, : nodes.count].max(axis=1, initial=1)

    def size(pod: PodRecord) -> float:
        requests = pod.pod_class.requests.items()
        return max((amount / max(int(largest[resource]), 1) for resource, amount in requests), default=0.0)

    return sorted(pods, key=lambda pod: (-size(pod), pod.key, pod.uid))


def _pods(number: int) -> str:
    return "its pod" if number == 1 else f"its {number} pods"
