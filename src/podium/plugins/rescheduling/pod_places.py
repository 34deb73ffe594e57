"""Where all pods are, and who has moved since somebody last looked.

Policies keep sums over pods; what a trial of the planner changes is a handful of pods among tens of thousands. They are
found on the rows that changed, roll-backs included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from podium.api.node import Node
from podium.cluster.arrays import Int32s, Int64s
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import NO_ROW
from podium.decide.rescheduling.landing import SOFT_TAINT
from podium.framework.rescheduling.picture import Picture

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
    meanwhile.
    """

    def __init__(self) -> None:
        self.classes: dict[int, PodClass] = {}
        self._picture: Picture | None = None
        self._position = self._node_position = -1
        self._nodes: list[Node | None] = []
        # When the picture was first seen: the slots by row, their rows, and by slot the classes.
        self._slots: Int64s = np.empty(0, dtype=np.int64)
        self._rows: Int32s = np.empty(0, dtype=np.int32)
        self._classes: Int32s = np.empty(0, dtype=np.int32)
        # The rows that have changed since: by slot, the classes of the pods on them.
        self._changed: dict[int, dict[int, int]] = {}

    def follow(self, picture: Picture) -> Moved | None:
        """Who has moved since the last time; None where everything is to be looked at anew."""
        changes = picture.cluster.nodes.changes
        if picture is not self._picture or not self._nodes_are_as_they_were(picture):
            self._begin(picture)
            return None
        if changes.position == self._position:
            return _NOBODY
        rows = changes.since(self._position)
        moved = None if rows is None else self._compare(picture, rows.tolist())
        if moved is None:
            self._begin(picture)
            return None
        self._position = changes.position
        return moved

    def slots(self) -> Int64s:
        """The slots of all pods, by row, when the picture was first seen."""
        return self._slots

    def rows_by_class(self) -> dict[int, list[int]]:
        """The rows of the pods of each class, by its id, when the picture was first seen."""
        if not len(self._slots):
            return {}
        classes = self._classes[self._slots]
        order = np.argsort(classes, kind="stable")
        ids, starts = np.unique(classes[order], return_index=True)
        parts = np.split(self._rows[order], starts[1:])
        return {class_id: part.tolist() for class_id, part in zip(ids.tolist(), parts, strict=True)}

    def _begin(self, picture: Picture) -> None:
        cluster = picture.cluster
        pods = cluster.pods
        self._picture = picture
        self._position, self._node_position = cluster.nodes.changes.position, cluster.nodes.node_changes.position
        self._nodes = list(cluster.nodes.nodes)
        rows = np.where(pods.terminating[: pods.count], NO_ROW, pods.row[: pods.count])
        order = np.argsort(rows, kind="stable")
        self._slots = order[rows[order] != NO_ROW]
        self._rows = rows[self._slots].astype(np.int32)
        self._classes = pods.pod_class[: pods.count].copy()
        self._changed = {}
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

    def _compare(self, picture: Picture, rows: list[int]) -> Moved | None:
        """Who is on some rows by now, against who was; None where somebody is of a class that was not there."""
        left: list[Place] = []
        came: list[Place] = []
        for row in rows:
            before = self._pods_before(row)
            pods = picture.cluster.pods_on(row) if picture.cluster.nodes.present[row] else []
            after = {pod.slot: pod.pod_class.id for pod in pods if not pod.terminating}
            left += [(slot, row, class_id) for slot, class_id in before.items() if after.get(slot) != class_id]
            came += [(slot, row, class_id) for slot, class_id in after.items() if before.get(slot) != class_id]
            self._changed[row] = after
        if not all(class_id in self.classes for _, _, class_id in came):
            return None
        return Moved(left, came, sorted({row for _, row, _ in left + came}))

    def _pods_before(self, row: int) -> dict[int, int]:
        """By slot, the classes of the pods that were on a row the last time."""
        known = self._changed.get(row)
        if known is not None:
            return known
        first, end = np.searchsorted(self._rows, (row, row + 1)).tolist()
        slots = self._slots[first:end]
        return dict(zip(slots.tolist(), self._classes[slots].tolist(), strict=True))


def _is_alike(before: Node | None, after: Node | None) -> bool:
    """Whether two readings of a node are the same but for the rescheduler's own taint."""
    if before is None or after is None or before is after:
        return before is after
    return _without_mark(before) == _without_mark(after)


def _without_mark(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint.key != SOFT_TAINT.key)
    return replace(node, spec=replace(node.spec, taints=taints))
