"""The requested share of nodes, and the number of pods that would have to move off them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from podium.api.avoid_list import PREFER_AVOID_PODS
from podium.api.node import Node
from podium.cluster.arrays import Bools, Int64s, runs
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import NO_ROW, PodRecord
from podium.cluster.view import View, kept_off
from podium.decide.autoscaling import belongs_to_node
from podium.decide.rescheduling.replacement_placement import SOFT_TAINT
from podium.framework.rescheduling.policy import Float64s, Picture
from podium.plugins.node_filters import required_nodes


def accepting(picture: Picture, pod_class: PodClass, among: Bools | None = None) -> Bools:
    """Return `[rows]` the nodes, of ``among`` or all, that accept moved pods and match a class's selectors."""
    cluster = picture.cluster
    fits: Bools = picture.targets[: cluster.nodes.count].copy()
    if among is not None:
        fits &= among
    rows = np.flatnonzero(fits)
    view = View(cluster, rows)
    fits[rows] = required_nodes(pod_class).rows(view) & ~kept_off(pod_class.spec.tolerations, view)
    return fits


def accepting_with_room(picture: Picture, pod_class: PodClass) -> Bools:
    """Return `[rows]` the nodes that accept another pod of a class and have room for it."""
    fits = accepting(picture, pod_class)
    rows = np.flatnonzero(fits)
    fits[rows] = has_room(picture, pod_class, rows)
    return fits


def rough_fit(picture: Picture, pod: PodRecord) -> Bools:
    """Return `[rows]` the nodes other than its own that accept a pod and have room for it."""
    fits = accepting_with_room(picture, pod.pod_class)
    if pod.row >= 0:
        fits[pod.row] = False
    return fits


def has_room(picture: Picture, pod_class: PodClass, rows: Int64s, without: PodRecord | None = None) -> Bools:
    """Return `[rows]` where a pod of a class would have room if another pod on those nodes were gone."""
    nodes = picture.cluster.nodes
    freed = {} if without is None else without.pod_class.requests
    found: Bools = nodes.pod_count[rows] - (without is not None) < nodes.allowed_pods[rows]
    for resource, amount in pod_class.requests.items():
        # Indexing the table's row first is much faster than both indices at once.
        left = nodes.allocatable[resource][rows] - nodes.requested[resource][rows]
        found &= left >= amount - freed.get(resource, 0)
    return found


def requested_shares(cluster: Cluster, rows: Int64s) -> Float64s:
    """Return ``[rows]`` the largest requested share of any resource of the node."""
    nodes = cluster.nodes
    offered, requested = nodes.allocatable[:, rows], nodes.requested[:, rows]
    shares = np.divide(requested, offered, out=np.zeros(offered.shape), where=offered > 0)
    return np.asarray(shares.max(axis=0, initial=0.0))


class NodeUse:
    """Shares and numbers of pods by row, updated for rows that changed.

    ``shares`` are the largest requested share of any resource. ``guests`` count the pods that are neither bound to the
    node (DaemonSet and mirror pods) nor terminating.
    """

    def __init__(self) -> None:
        self._changes = RowChanges()
        self.shares: Float64s = np.zeros(0)
        self.guests: Int64s = np.zeros(0, dtype=np.int64)

    def update(self, cluster: Cluster) -> None:
        count, rows = cluster.nodes.count, self._changes.since_last(cluster)
        if rows is None:
            rows = cluster.nodes.all_rows()
            self.shares, self.guests = np.zeros(count), np.zeros(count, dtype=np.int64)
        if len(rows):
            self.shares[rows] = requested_shares(cluster, rows)
            for row in rows.tolist():
                self.guests[row] = len(guests_on(cluster, row))


def guests_on(cluster: Cluster, row: int) -> list[PodRecord]:
    """Return the pods on a node that are not bound to it and stay, by slot."""
    return [pod for pod in cluster.pods_on(row) if not (pod.terminating or belongs_to_node(pod))]


class RowChanges:
    """A position in the change log of a cluster."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._basis: object = None
        self._position = self._count = 0

    def since_last(self, cluster: Cluster, basis: object = None) -> Int64s | None:
        """Return the rows that changed since the last call, ascending.

        None for all rows: if there are new ones, or if ``basis``, on which values depend besides, is another object.
        """
        nodes = cluster.nodes
        is_same = cluster is self._cluster and basis is self._basis and nodes.count == self._count
        changed = nodes.changes.since(self._position) if is_same else None
        self._cluster, self._basis, self._count = cluster, basis, nodes.count
        self._position = nodes.changes.position
        return changed


def placed_slots(cluster: Cluster, rows: Int64s) -> Int64s:
    """Return the slots of the pods on some rows, ascending. Terminating pods count as gone."""
    if len(rows) * 100 < cluster.nodes.count:
        slots = [pod.slot for row in rows.tolist() for pod in cluster.pods_on(row) if not pod.terminating]
        return np.array(sorted(slots), dtype=np.int64)
    is_wanted = np.zeros(cluster.nodes.count, dtype=np.bool_)
    is_wanted[rows] = True
    pods = cluster.pods
    placed = np.flatnonzero((pods.row[: pods.count] != NO_ROW) & ~pods.terminating[: pods.count])
    return placed[is_wanted[pods.row[placed]]]


Moves = list[tuple[int, int, int]]
"""Class, row, and the change of the number of the class's pods in the row. Departures come first."""


class PodPlaces:
    """The number of pods of each class on each row, from picture to picture while nothing but pods changes.

    Terminating pods count as gone: the state after them is what matters. ``classes`` are those of the pods that were
    placed at the beginning, by id. They are referenced here, so that no id comes to mean another class.
    """

    def __init__(self) -> None:
        self.classes: dict[int, PodClass] = {}
        # The inputs of demands besides pods and nodes.
        self._basis: tuple[object, ...] = ()
        self._position = self._node_position = -1
        self._nodes: list[Node | None] = []
        # The rows and classes of all pods at the beginning; and by row that changed since, the numbers by class.
        self._rows = self._classes = np.empty(0, dtype=np.int32)
        self._on_row: dict[int, Counter[int]] = {}

    def follow(self, picture: Picture) -> Moves | None:
        """Return the moves since the last update; None if everything must be recomputed."""
        cluster = picture.cluster
        is_same = self._basis_of(picture) == self._basis and self._nodes_are_as_they_were(picture)
        rows = cluster.nodes.changes.since(self._position) if is_same else None
        if rows is None:
            self._begin(picture)
            return None
        moves: Moves = []
        for row in rows.tolist():
            before = self._on_row.get(row)
            if before is None:
                before = Counter(self._classes[self._rows == row].tolist())
            now = Counter(pod.pod_class.id for pod in cluster.pods_on(row) if not pod.terminating)
            moves += [(class_id, row, now[class_id] - before[class_id]) for class_id in (before | now)]
            self._on_row[row] = now
        if not all(class_id in self.classes for class_id, _, _ in moves):
            self._begin(picture)
            return None
        self._position = cluster.nodes.changes.position
        return sorted([move for move in moves if move[2]], key=lambda move: move[2])

    def rows_by_class(self) -> dict[int, Int64s]:
        """Return the rows of the pods of each class at the beginning, by its id."""
        order = np.argsort(self._classes, kind="stable")
        classes, rows = self._classes[order], self._rows[order].astype(np.int64)
        starts = runs(classes)
        parts = zip(classes[starts[:-1]].tolist(), pairwise(starts.tolist()), strict=True)
        return {class_id: rows[first:end] for class_id, (first, end) in parts}

    def _begin(self, picture: Picture) -> None:
        cluster = picture.cluster
        pods, nodes = cluster.pods, cluster.nodes
        self._basis = self._basis_of(picture)
        self._position, self._node_position = nodes.changes.position, nodes.node_changes.position
        self._nodes = list(nodes.nodes)
        slots = placed_slots(cluster, nodes.all_rows())
        self._rows, self._classes, self._on_row = pods.row[slots], pods.pod_class[slots], {}
        self.classes = {class_id: cluster.classes[class_id] for class_id in sorted(pods.of_class)}

    def _basis_of(self, picture: Picture) -> tuple[object, ...]:
        cluster, targets = picture.cluster, picture.targets.tobytes()
        return cluster, picture.runners, cluster.namespaces.generation, cluster.groups.generation, targets

    def _nodes_are_as_they_were(self, picture: Picture) -> bool:
        """Return whether no node changed, except for the rescheduler's own marks on nodes that pods leave."""
        nodes = picture.cluster.nodes
        if self._node_position == nodes.node_changes.position:
            return True
        changed = nodes.node_changes.since(self._node_position)
        if changed is None or nodes.count != len(self._nodes):
            return False
        rows = changed.tolist()
        if any(_without_own_marks(self._nodes[row]) != _without_own_marks(nodes.nodes[row]) for row in rows):
            return False
        self._node_position = nodes.node_changes.position
        return True


def _without_own_marks(node: Node | None) -> Node | None:
    """Return a node without the rescheduler's own taint, and without its avoid list."""
    if node is None:
        return None
    taints = tuple(taint for taint in node.spec.taints if taint.key != SOFT_TAINT.key)
    annotations = {key: value for key, value in node.metadata.annotations.items() if key != PREFER_AVOID_PODS}
    meta = replace(node.metadata, annotations=annotations, resource_version="")
    return replace(node, metadata=meta, spec=replace(node.spec, taints=taints))
