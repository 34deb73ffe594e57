"""Where all pods are, and who has moved since somebody last looked.

Policies keep sums over pods; what a trial of the planner changes is a handful of pods among tens of thousands. They are
found by comparing columns, which costs some microseconds and misses nothing, roll-backs included.
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


@dataclass(frozen=True, slots=True)
class Moved:
    """The slots whose pod is another, or elsewhere, than before: ``[n]`` each, `NO_ROW` where no pod is or was."""

    slots: Int64s
    rows_before: Int32s
    classes_before: Int32s
    rows: Int32s
    classes: Int32s

    @property
    def changed_rows(self) -> Int64s:
        """The rows that somebody left or came to, ascending."""
        rows = {*self.rows_before.tolist(), *self.rows.tolist()} - {NO_ROW}
        return np.array(sorted(rows), dtype=np.int64)

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """Class, row, and by how many (-1 or 1) the pods of the class on the row changed; who left comes first."""
        for row, class_id in zip(self.rows_before.tolist(), self.classes_before.tolist(), strict=True):
            if row != NO_ROW:
                yield class_id, row, -1
        for row, class_id in zip(self.rows.tolist(), self.classes.tolist(), strict=True):
            if row != NO_ROW:
                yield class_id, row, 1


_NO_ROWS: Int32s = np.empty(0, dtype=np.int32)
_NOBODY = Moved(np.empty(0, dtype=np.int64), _NO_ROWS, _NO_ROWS, _NO_ROWS, _NO_ROWS)


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
        self._rows: Int32s = np.empty(0, dtype=np.int32)
        self._classes: Int32s = np.empty(0, dtype=np.int32)

    def follow(self, picture: Picture) -> Moved | None:
        """Who has moved since the last time; None where everything is to be looked at anew."""
        nodes, pods = picture.cluster.nodes, picture.cluster.pods
        position = nodes.changes.position
        if picture is not self._picture or not self._nodes_are_as_they_were(picture):
            self._begin(picture)
            return None
        if position == self._position:
            return _NOBODY
        moved = self._compare(_rows(picture), pods.pod_class[: pods.count])
        if not all(class_id in self.classes for class_id in moved.classes[moved.rows != NO_ROW].tolist()):
            self._begin(picture)
            return None
        self._position = position
        return moved

    def slots(self) -> Int64s:
        """The slots of all pods that are somewhere, ascending."""
        return np.flatnonzero(self._rows != NO_ROW)

    def rows_by_class(self) -> dict[int, list[int]]:
        """The rows of the pods of each class, by its id."""
        slots = self.slots()
        if not len(slots):
            return {}
        slots = slots[np.argsort(self._classes[slots], kind="stable")]
        ids, starts = np.unique(self._classes[slots], return_index=True)
        parts = np.split(self._rows[slots], starts[1:])
        return {class_id: part.tolist() for class_id, part in zip(ids.tolist(), parts, strict=True)}

    def _begin(self, picture: Picture) -> None:
        cluster = picture.cluster
        pods = cluster.pods
        self._picture = picture
        self._position, self._node_position = cluster.nodes.changes.position, cluster.nodes.node_changes.position
        self._nodes = list(cluster.nodes.nodes)
        self._rows, self._classes = _rows(picture), pods.pod_class[: pods.count].copy()
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

    def _compare(self, rows: Int32s, classes: Int32s) -> Moved:
        if len(rows) > len(self._rows):
            added = len(rows) - len(self._rows)
            self._rows = np.append(self._rows, np.full(added, NO_ROW, dtype=np.int32))
            self._classes = np.append(self._classes, np.zeros(added, dtype=np.int32))
        slots = np.flatnonzero((rows != self._rows) | (classes != self._classes))
        moved = Moved(slots, self._rows[slots], self._classes[slots], rows[slots], classes[slots])
        self._rows[slots], self._classes[slots] = moved.rows, moved.classes
        return moved


def _rows(picture: Picture) -> Int32s:
    """`[slots]`: where each pod is, `NO_ROW` for those that terminate."""
    pods = picture.cluster.pods
    return np.where(pods.terminating[: pods.count], np.int32(NO_ROW), pods.row[: pods.count])


def _is_alike(before: Node | None, after: Node | None) -> bool:
    """Whether two readings of a node are the same but for the rescheduler's own taint."""
    if before is None or after is None or before is after:
        return before is after
    return _without_mark(before) == _without_mark(after)


def _without_mark(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint.key != SOFT_TAINT.key)
    return replace(node, spec=replace(node.spec, taints=taints))
