"""Nodes that are hardly used: how bad that is, and what would free them.

Source: autoscaler cluster-autoscaler (core/scaledown); descheduler pkg/framework/plugins/nodeutilization
(highnodeutilization.go).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from podium.cluster.arrays import Bools
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.linear import LinearForm, Movables, Pair, Use
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Float64s, Proposal, Relocation
from podium.plugins.rescheduling.consolidation.emptied_together import MOST_PODS, Emptied, EmptiedTogether
from podium.plugins.rescheduling.consolidation.packing import Packing
from podium.plugins.rescheduling.parts.node_use import NodeUse, guests_on

# A node is freed as a whole, and a plan of so many pods is none.
_MOST_PODS = 100


class FreedNodes:
    """Nodes below a share of what they offer are to be freed.

    Every node in use counts the same, however much of it is asked for: that a node is filled up is worth nothing, and
    neither is a node that is emptied in part. So all that is worth anything is that fewer nodes are in use, and that is
    worth most for each pod that moves where few pods keep a node. The share only says which nodes are looked into.
    """

    def __init__(self, threshold: float, worth: float, max_nodes: int) -> None:
        self._threshold = threshold
        self._worth = worth
        self._max_nodes = max_nodes
        self.use = NodeUse()

    def badness(self, picture: Picture) -> float:
        """The nodes in use, each for what it is worth to free it."""
        if not self._threshold:
            return 0.0
        return self._worth * int(np.count_nonzero(self._counted(picture)))

    def linear(self, movables: Movables) -> LinearForm:
        """`badness` as a price for each node that is in use, whoever uses it."""
        if not self._threshold:
            return LinearForm()
        picture = movables.picture
        cluster, count = picture.cluster, picture.cluster.nodes.count
        guests = {pod.uid for row in range(count) for pod in guests_on(cluster, row)}
        kept = {pod.row for pod in movables.staying() if pod.uid in guests}
        pairs: defaultdict[int, list[Pair]] = defaultdict(list)
        for pod, row in movables.pairs():
            if pod.uid in guests and row not in kept and picture.targets[row]:
                pairs[row].append((pod.uid, row))
        base = self._worth * sum(bool(picture.targets[row]) for row in kept)
        return LinearForm(base, uses=tuple(Use(pairs[row], self._worth) for row in sorted(pairs)))

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """All pods of a node: first of those that are best emptied together, then of others.

        Of either the fewest pods first; of equals, of the least used; then by name.
        """
        if not self._threshold:
            return
        rows = self._in_order(picture)
        together = self._together(picture, rows)
        to_free, looked_into = set(together.rows), 0
        for row in sorted(rows, key=lambda row: row not in together.rows):
            if looked_into == self._max_nodes:
                return
            to_free.discard(row)
            proposal = self._proposal(picture, row, Emptied(frozenset(to_free), together.homes))
            if proposal is not None:
                looked_into += 1
                yield proposal

    def _in_order(self, picture: Picture) -> list[int]:
        """The rows of the nodes that are hardly used, of the fewest pods first; of equals, the least used; by name."""
        rows: list[int] = np.flatnonzero(self._hardly_used(picture)).tolist()
        guests, shares = self.use.guests, self.use.shares
        return sorted(rows, key=lambda row: (guests[row], shares[row], picture.node_name(row)))

    def _together(self, picture: Picture, rows: Sequence[int]) -> Emptied:
        """Which nodes are best emptied together, of the first of some that could be emptied at all."""
        candidates: list[tuple[int, list[PodRecord]]] = []
        left = MOST_PODS
        for row in rows:
            leaving = self._leaving(picture, row)
            left -= len(leaving)
            if left < 0 or len(candidates) == self._max_nodes:
                break
            if leaving:
                candidates.append((row, leaving))
        pods = by_size(picture, [pod for _, leaving in candidates for pod in leaving])
        homes = np.flatnonzero(self._counted(picture)).astype(np.int64)
        return EmptiedTogether(Packing(picture, homes, pods), candidates).search()

    def _counted(self, picture: Picture) -> Bools:
        """``[rows]``: the nodes in use, without those that somebody else empties."""
        self.use.look(picture.cluster)
        in_use = self.use.in_use()
        counted: Bools = in_use & picture.targets[: len(in_use)]
        return counted

    def _hardly_used(self, picture: Picture) -> Bools:
        found: Bools = self._counted(picture) & (self.use.shares < self._threshold)
        return found

    def _leaving(self, picture: Picture, row: int) -> list[PodRecord]:
        """Who would have to leave a node; nobody where some pod of it may not be moved."""
        leaving = guests_on(picture.cluster, row)
        return leaving if len(leaving) <= _MOST_PODS and all(map(picture.is_movable, leaving)) else []

    def _proposal(self, picture: Picture, row: int, together: Emptied) -> Proposal | None:
        """What frees a node as things stand by now; None where some pod of it may not be moved.

        Its pods had best go each to the home that was found for it, and not to nodes that are still to be emptied with
        it.
        """
        if not self._hardly_used(picture)[row]:
            return None
        leaving = self._leaving(picture, row)
        if not leaving:
            return None
        targets = self._counted(picture)
        targets[row] = False
        name, share = picture.node_name(row), float(self.use.shares[row])
        reason = f"{name} is asked for {share:.0%} of what it offers; without {_pods(len(leaving))} it is free"
        shares = self.use.shares.copy()
        shares[list(together.rows)] -= 1 + shares.max()
        relocations = (
            Relocation(pod, targets, _with_home(shares, together.homes.get(pod.uid)))
            for pod in by_size(picture, leaving)
        )
        return Proposal(tuple(relocations), reason, in_parts=True)


def _with_home(shares: Float64s, home: int | None) -> Float64s:
    """What a pod prefers of the nodes: its home, then the fullest."""
    if home is None:
        return shares
    preferred = shares.copy()
    preferred[home] = 1 + shares.max()
    return preferred


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
