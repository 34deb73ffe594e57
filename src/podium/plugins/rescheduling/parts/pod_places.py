"""Where all pods are, and who has moved since somebody last looked.

Policies keep sums over pods; what a trial of the planner changes is a handful of pods among tens of thousands. They are
found by comparing columns: trials touch many more rows than in the end are another than before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from podium.api.node import Node
from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import NO_ROW
from podium.decide.rescheduling.landing import SOFT_TAINT
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.signals import predecessor

Place = tuple[int, int, int]
"""The slot of a pod, its row, and the id of its class."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The places that pods left, and those that they came to; ``rows`` are those of both, ascending."""

    left: list[Place]
    came: list[Place]
    rows: list[int]

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """Class, row, and by how many (-1 or 1) the pods of the class on the row changed; who left comes first."""
        for _, row, class_id in self.left:
            yield class_id, row, -1
        for _, row, class_id in self.came:
            yield class_id, row, 1


_NOBODY = Moved([], [], [])


class PodPlaces:
    """The pods of one picture by place. While a picture lasts, pods move and nothing else changes.

    Pods that terminate count as gone: what they leave behind is what counts. ``classes`` are those of the pods that
    were placed when the picture was first seen, by id. They are held here, so that no id comes to mean another class
    meanwhile. Whoever counts by pod, and not by class, ``tells_apart`` pods of one class: another one in the slot of
    one that has left, on the same row, is then a move as well; a replacement of it is not.
    """

    def __init__(self, *, tells_apart: bool = False) -> None:
        self._tells_apart = tells_apart
        # By slot, where pods are told apart.
        self._uids: list[str] = []
        self.classes: dict[int, PodClass] = {}
        self._picture: Picture | None = None
        self._position = self._node_position = -1
        self._nodes: list[Node | None] = []
        # By slot, as they were the last time.
        self._rows: Int32s = np.empty(0, dtype=np.int32)
        self._classes: Int32s = np.empty(0, dtype=np.int32)
        self._terminating: Bools = np.empty(0, dtype=np.bool_)

    def follow(self, picture: Picture) -> Moved | None:
        """Who has moved since the last time; None where everything is to be looked at anew."""
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
        """The slots of all pods that are somewhere, ascending."""
        return np.flatnonzero((self._rows != NO_ROW) & ~self._terminating)

    def rows_by_class(self) -> dict[int, Int64s]:
        """The rows of the pods of each class, by its id."""
        slots = self.slots()
        if not len(slots):
            return {}
        slots = slots[np.argsort(self._classes[slots], kind="stable")]
        ids, starts = np.unique(self._classes[slots], return_index=True)
        parts = np.split(self._rows[slots], starts[1:])
        return {class_id: part.astype(np.int64) for class_id, part in zip(ids.tolist(), parts, strict=True)}

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
        """Whether no node changed but by the taint with which the rescheduler itself marks those that pods leave."""
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
        """Who is where by now, against who was."""
        pods = picture.cluster.pods
        count = len(self._rows)
        differ = (pods.row[:count] != self._rows) | (pods.pod_class[:count] != self._classes)
        differ |= pods.terminating[:count] != self._terminating
        if self._tells_apart:
            self._tell_apart(picture, differ)
        slots = np.flatnonzero(differ)
        if pods.count > count:
            self._grow(pods.count)
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

    def _tell_apart(self, picture: Picture, differ: Bools) -> None:
        """Note the slots of rows that were touched in which another pod is than before."""
        cluster = picture.cluster
        touched = cluster.nodes.changes.since(self._position)
        for row in (cluster.nodes.all_rows() if touched is None else touched).tolist():
            for pod in cluster.pods_on(row):
                if pod.slot < len(differ) and self._uids[pod.slot] != predecessor(pod.uid):
                    differ[pod.slot] = True

    def _places(self, slots: Int64s) -> list[Place]:
        """The places of the pods in some slots, without those that are nowhere or gone."""
        slots = slots[(self._rows[slots] != NO_ROW) & ~self._terminating[slots]]
        return list(zip(slots.tolist(), self._rows[slots].tolist(), self._classes[slots].tolist(), strict=True))

    def _grow(self, count: int) -> None:
        """There are more slots; nobody was in them."""
        added = count - len(self._rows)
        self._rows = np.append(self._rows, np.full(added, NO_ROW, dtype=np.int32))
        self._classes = np.append(self._classes, np.zeros(added, dtype=np.int32))
        self._terminating = np.append(self._terminating, np.zeros(added, dtype=np.bool_))


def _is_alike(before: Node | None, after: Node | None) -> bool:
    """Whether two readings of a node are the same but for the rescheduler's own taint."""
    if before is None or after is None or before is after:
        return before is after
    return _without_mark(before) == _without_mark(after)


def _without_mark(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint.key != SOFT_TAINT.key)
    return replace(node, spec=replace(node.spec, taints=taints))
