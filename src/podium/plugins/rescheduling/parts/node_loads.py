"""How much of some resources is asked for, or used, on each node, and by how many pods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Float64s
from podium.framework.rescheduling.signals import predecessor
from podium.plugins.rescheduling.parts.pod_places import Moved, Place, PodPlaces

PODS = "pods"
MEASURED = ("cpu", "memory")
"""The resources whose use is measured."""

# Roots of amounts are kept as whole numbers of this share of one, so that sums do not hang on their order.
_ROOT_UNIT = 2**16
# A pod that says to want more counts as this much, so that no sum overflows.
_MOST = 2**45


class NodeLoads:
    """The sums over the pods of each node, of ``resources``: `[resources, rows]`.

    ``amounts`` is what the pods request, or of cpu and memory what they are measured to use, where ``by_use`` says so
    and somebody measures. Resources are those of Kubernetes, and ``pods``, of which a pod takes 1.
    """

    def __init__(self, resources: Sequence[str], *, by_use: bool) -> None:
        self.resources = tuple(resources)
        self._by_use = by_use
        # What a pod uses is its own, what it requests that of its class.
        self._places = PodPlaces(tells_apart=by_use)
        self.amounts: Int64s = np.zeros((len(self.resources), 0), dtype=np.int64)
        self._roots: Int64s = self.amounts
        self.allocatable: Int64s = self.amounts
        # By slot.
        self._of_slots: Int64s = self.amounts

    def follow(self, picture: Picture) -> Int64s:
        """Be those of the picture as it is by now; returns the rows that changed."""
        moved = self._places.follow(picture)
        if moved is None:
            self._begin(picture)
            return picture.cluster.nodes.all_rows()
        if moved.rows:
            self._move(picture, moved)
        return np.array(moved.rows, dtype=np.int64)

    def shares(self, rows: Int64s) -> Float64s:
        """`[resources, n]`: the amounts on some rows as shares of what the nodes have; 0 of what a node lacks."""
        have = self.allocatable[:, rows]
        shares: Float64s = self.amounts[:, rows] / np.maximum(have, 1)
        shares[have <= 0] = 0.0
        return shares

    def effective_pods(self, rows: Int64s) -> Float64s:
        """`[resources, n]`: how many pods share the amounts of some rows; small ones count little beside large ones.

        It is the Hill number of order 1/2 of their sizes: equal pods count as so many, those of size 0 not at all.
        """
        return _effective(self._roots[:, rows], self.amounts[:, rows])

    def of_pods(self, picture: Picture, pods: Sequence[PodRecord]) -> Int64s:
        """`[resources, n]`: what placed pods add to their nodes."""
        return self._amounts(picture, np.array([pod.slot for pod in pods], dtype=np.int64))

    def parts(self) -> tuple[Int64s, Int64s]:
        """`[2 * resources, rows]` each: the amounts and their roots on each node, and the most there can be of them.

        Of roots there can be any number.
        """
        unlimited = np.full(self._roots.shape, np.iinfo(np.int64).max)
        return np.concatenate([self.amounts, self._roots]), np.concatenate([self.allocatable, unlimited])

    def parts_of(self, picture: Picture, pods: Sequence[PodRecord]) -> tuple[Int64s, Int64s]:
        """`[resources, n]` each: what placed pods add to the amounts of their nodes, and to the roots."""
        amounts = self.of_pods(picture, pods)
        return amounts, _roots(amounts)

    def as_shares(self, row: int, amounts: Int64s, roots: Int64s) -> tuple[Float64s, Float64s]:
        """`[resources, 1]` each: `shares` and `effective_pods` of a row if it had such amounts."""
        have = self.allocatable[:, row, None]
        shares: Float64s = np.where(have > 0, amounts / np.maximum(have, 1), 0.0)
        return shares, _effective(roots, amounts)

    def without(self, row: int, amounts: Int64s) -> tuple[Float64s, Float64s]:
        """`[resources, n]` each: `shares` and `effective_pods` of a row without a pod of amounts, for each of n."""
        rest = self.amounts[:, row, None] - amounts
        shares: Float64s = rest / np.maximum(self.allocatable[:, row, None], 1)
        return shares, _effective(self._roots[:, row, None] - _roots(amounts), rest)

    def _begin(self, picture: Picture) -> None:
        cluster = picture.cluster
        nodes, pods = cluster.nodes, cluster.pods
        shape = (len(self.resources), nodes.count)
        self.allocatable = np.zeros(shape, dtype=np.int64)
        for place, resource in enumerate(self.resources):
            self.allocatable[place] = _allocatable(cluster, resource)
        self.amounts, self._roots = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        slots = self._places.slots()
        self._of_slots = np.zeros((len(self.resources), pods.count), dtype=np.int64)
        self._of_slots[:, slots] = self._amounts(picture, slots)
        self._book(pods.row[slots].astype(np.int64), self._of_slots[:, slots], 1)

    def _move(self, picture: Picture, moved: Moved) -> None:
        if picture.cluster.pods.count > self._of_slots.shape[1]:
            added = picture.cluster.pods.count - self._of_slots.shape[1]
            self._of_slots = np.pad(self._of_slots, ((0, 0), (0, added)))
        left, came = _columns(moved.left), _columns(moved.came)
        self._book(left[1], self._of_slots[:, left[0]], -1)
        self._of_slots[:, came[0]] = self._amounts(picture, came[0])
        self._book(came[1], self._of_slots[:, came[0]], 1)

    def _book(self, rows: Int64s, amounts: Int64s, sign: int) -> None:
        roots = _roots(amounts)
        for place in range(len(self.resources)):
            np.add.at(self.amounts[place], rows, sign * amounts[place])
            np.add.at(self._roots[place], rows, sign * roots[place])

    def _amounts(self, picture: Picture, slots: Int64s) -> Int64s:
        """`[resources, slots]`: what the pods in some slots add to their nodes."""
        cluster = picture.cluster
        amounts = np.ones((len(self.resources), len(slots)), dtype=np.int64)
        classes = cluster.pods.pod_class[slots]
        for place, resource in enumerate(self.resources):
            if resource != PODS:
                index = cluster.nodes.resource_index.get(resource)
                known = index is not None and index < len(cluster.classes.requests)
                amounts[place] = cluster.classes.requests[index, classes] if known else 0
            if self._by_use and resource in MEASURED and picture.signals.pods:
                self._measure(picture, slots, resource, amounts[place])
        return np.clip(amounts, 0, _MOST)

    def _measure(self, picture: Picture, slots: Int64s, resource: str, amounts: Int64s) -> None:
        """Put in what pods are measured to use, for those that are; a replacement uses what its predecessor did."""
        of_pod, record = picture.signals.of_pod, picture.cluster.pods.record
        for place, slot in enumerate(slots.tolist()):
            told = of_pod(predecessor(record(slot).uid))
            used = told.cpu_used_milli if resource == "cpu" else told.memory_used_bytes
            if used is not None:
                amounts[place] = min(used, _MOST)


def _columns(places: list[Place]) -> Int64s:
    """`[3, n]`: slots, rows and classes."""
    return np.array(places, dtype=np.int64).reshape(-1, 3).T


def _roots(amounts: Int64s) -> Int64s:
    roots: Int64s = np.rint(np.sqrt(amounts) * _ROOT_UNIT).astype(np.int64)
    return roots


def _effective(roots: Int64s, amounts: Int64s) -> Float64s:
    pods: Float64s = (roots / _ROOT_UNIT) ** 2 / np.maximum(amounts, 1)
    return pods


def _allocatable(cluster: Cluster, resource: str) -> Int64s:
    nodes = cluster.nodes
    if resource == PODS:
        return nodes.allowed_pods[: nodes.count]
    index = nodes.resource_index.get(resource)
    return np.zeros(nodes.count, dtype=np.int64) if index is None else nodes.allocatable[index, : nodes.count]
