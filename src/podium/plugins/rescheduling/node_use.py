"""How full nodes are by requests, and how many of their pods would have to move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from podium.api.node import Node
from podium.cluster.arrays import Bools, Int32s, Int64s, runs
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import NO_ROW, PodRecord
from podium.cluster.view import View, kept_off
from podium.decide.autoscaling import belongs_to_node
from podium.decide.rescheduling.replacement_placement import SOFT_TAINT
from podium.framework.rescheduling.policy import Float64s, Picture, predecessor
from podium.plugins.node_affinity import required_nodes


def rough_fit(picture: Picture, pod: PodRecord, among: Bools | None = None, *, is_new: bool = False) -> Bools:
    """Return `[rows]` the nodes, of ``among`` or all, that accept moved pods, match the pod's selectors, and have room.

    The pod's own node is left out, unless ``is_new`` means another pod of its class.
    """
    fits = rough_choice(picture, pod, among, is_new=is_new)
    rows = np.flatnonzero(fits).astype(np.int64)
    if len(rows):
        fits[rows] = has_room(picture, pod, rows)
    return fits


def rough_choice(picture: Picture, pod: PodRecord, among: Bools | None = None, *, is_new: bool = False) -> Bools:
    """Return `[rows]` the same regardless of room."""
    cluster = picture.cluster
    fits: Bools = picture.targets[: cluster.nodes.count].copy()
    if among is not None:
        fits &= among
    if pod.row >= 0 and not is_new:
        fits[pod.row] = False
    rows = np.flatnonzero(fits)
    if len(rows):
        view = View(cluster, rows)
        fits[rows] = required_nodes(pod.pod_class).rows(view) & ~kept_off(pod.spec.tolerations, view)
    return fits


def has_room(picture: Picture, pod: PodRecord, rows: Int64s, without: PodRecord | None = None) -> Bools:
    """Return `[rows]` where a pod would have room if another pod on those nodes were gone."""
    nodes = picture.cluster.nodes
    freed = {} if without is None else without.pod_class.requests
    found: Bools = nodes.pod_count[rows] - (without is not None) < nodes.allowed_pods[rows]
    for resource, amount in pod.pod_class.requests.items():
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

    def look(self, cluster: Cluster) -> None:
        """Update the numbers."""
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


Place = tuple[int, int, int]
"""The slot of a pod, its row, and the id of its class."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The places that pods left, and those that they came to; ``rows`` are those of both, ascending."""

    left: list[Place]
    came: list[Place]
    rows: list[int]

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """Yield class, row, and the change (-1 or 1) of the number of the class's pods in the row.

        Departures come first.
        """
        for sign, places in ((-1, self.left), (1, self.came)):
            for _, row, class_id in places:
                yield class_id, row, sign


_NOBODY = Moved([], [], [])


class PodPlaces:
    """The pods of one picture by place. While a picture lasts, pods move and nothing else changes.

    Terminating pods count as gone: the state after them is what matters. ``classes`` are those of the pods that were
    placed when the picture was first seen, by id. They are referenced here, so that no id comes to mean another class.
    With ``tells_apart`` pods of one class are distinguished: another pod in the slot of one that has left, in the same
    row, is then a move as well; its replacement is not.
    """

    def __init__(self, *, tells_apart: bool = False) -> None:
        self._tells_apart = tells_apart
        # By slot, if pods are distinguished.
        self._uids: list[str] = []
        self.classes: dict[int, PodClass] = {}
        self._picture: Picture | None = None
        self._position = self._node_position = -1
        self._nodes: list[Node | None] = []
        # By slot, as of the last update.
        self._rows: Int32s = np.empty(0, dtype=np.int32)
        self._classes: Int32s = np.empty(0, dtype=np.int32)
        self._terminating: Bools = np.empty(0, dtype=np.bool_)

    def follow(self, picture: Picture) -> Moved | None:
        """Return the moves since the last update; None if everything must be recomputed."""
        changes = picture.cluster.nodes.changes
        if picture is not self._picture or not self._nodes_are_as_they_were(picture):
            self._begin(picture)
            return None
        if changes.position == self._position:
            return _NOBODY
        moved = self._compare(picture)
        if not all(class_id in self.classes for _, _, class_id in moved.came):
            self._begin(picture)
            return None
        self._position = changes.position
        return moved

    def slots(self) -> Int64s:
        """Return the slots of all placed pods, ascending."""
        return np.flatnonzero((self._rows != NO_ROW) & ~self._terminating)

    def rows_by_class(self) -> dict[int, Int64s]:
        """Return the rows of the pods of each class, by its id."""
        slots = self.slots()
        slots = slots[np.argsort(self._classes[slots], kind="stable")]
        classes, rows = self._classes[slots], self._rows[slots].astype(np.int64)
        starts = runs(classes)
        parts = zip(classes[starts[:-1]].tolist(), pairwise(starts.tolist()), strict=True)
        return {class_id: rows[first:end] for class_id, (first, end) in parts}

    def _begin(self, picture: Picture) -> None:
        cluster = picture.cluster
        pods = cluster.pods
        self._picture = picture
        self._position, self._node_position = cluster.nodes.changes.position, cluster.nodes.node_changes.position
        self._nodes = list(cluster.nodes.nodes)
        self._rows, self._classes = pods.row[: pods.count].copy(), pods.pod_class[: pods.count].copy()
        self._terminating = pods.terminating[: pods.count].copy()
        if self._tells_apart:
            self._uids = ["" if record is None else predecessor(record.uid) for record in pods.records]
        self.classes = {class_id: cluster.classes[class_id] for class_id in sorted(pods.of_class)}

    def _nodes_are_as_they_were(self, picture: Picture) -> bool:
        """Return whether no node changed, except for the rescheduler's own taint on nodes that pods leave."""
        nodes = picture.cluster.nodes
        if self._node_position == nodes.node_changes.position:
            return True
        changed = nodes.node_changes.since(self._node_position)
        if changed is None or nodes.count != len(self._nodes):
            return False
        if not all(_is_alike(self._nodes[row], nodes.nodes[row]) for row in changed.tolist()):
            return False
        self._node_position = nodes.node_changes.position
        return True

    def _compare(self, picture: Picture) -> Moved:
        """Compare the present places with the former ones."""
        pods = picture.cluster.pods
        count = len(self._rows)
        differ = (pods.row[:count] != self._rows) | (pods.pod_class[:count] != self._classes)
        differ |= pods.terminating[:count] != self._terminating
        touched = picture.cluster.nodes.changes.since(self._position) if self._tells_apart else np.empty(0, np.int64)
        for row in (picture.cluster.nodes.all_rows() if touched is None else touched).tolist():
            # Another pod than before may be in the slot.
            for pod in picture.cluster.pods_on(row):
                if pod.slot < count and self._uids[pod.slot] != predecessor(pod.uid):
                    differ[pod.slot] = True
        slots = np.flatnonzero(differ)
        if pods.count > count:
            added = pods.count - count
            self._rows = np.append(self._rows, np.full(added, NO_ROW, dtype=np.int32))
            self._classes = np.append(self._classes, np.zeros(added, dtype=np.int32))
            self._terminating = np.append(self._terminating, np.zeros(added, dtype=np.bool_))
            slots = np.append(slots, np.arange(count, pods.count))
        left = self._places(slots)
        self._rows[slots], self._classes[slots] = pods.row[slots], pods.pod_class[slots]
        self._terminating[slots] = pods.terminating[slots]
        came = self._places(slots)
        if self._tells_apart:
            self._uids += [""] * (pods.count - len(self._uids))
            for slot, _, _ in came:
                self._uids[slot] = predecessor(pods.record(slot).uid)
        return Moved(left, came, sorted({row for _, row, _ in left + came}))

    def _places(self, slots: Int64s) -> list[Place]:
        """Return the places of the pods in some slots, without pods that are not placed or are gone."""
        slots = slots[(self._rows[slots] != NO_ROW) & ~self._terminating[slots]]
        return list(zip(slots.tolist(), self._rows[slots].tolist(), self._classes[slots].tolist(), strict=True))


def _is_alike(before: Node | None, after: Node | None) -> bool:
    """Return whether two readings of a node are equal except for the rescheduler's own taint."""
    if before is None or after is None or before is after:
        return before is after
    specs = [
        replace(node.spec, taints=tuple(taint for taint in node.spec.taints if taint.key != SOFT_TAINT.key))
        for node in (before, after)
    ]
    return replace(before, spec=specs[0]) == replace(after, spec=specs[1])
