"""Nodes as columns: one row a node, one array a property.

Arrays are over-allocated; the first ``count`` entries are in use, and ``present`` tells which of them hold a node.
Rows of removed nodes are used again. Shapes: ``[rows]``, or ``[resources, rows]``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from podium.api.node import Node, Taint
from podium.api.requests import node_allocatable
from podium.cluster.arrays import Bools, Int32s, Int64s, UInt64s, grown, stable_hash
from podium.cluster.change_log import ChangeLog

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage")
# A pseudo label key under which a node's name can be selected (matchFields knows this field only).
NAME_FIELD = "\0metadata.name"


class LabelColumn:
    """The values of one label key, as codes: ``codes[row]`` is 0 where the node lacks the label."""

    def __init__(self, capacity: int) -> None:
        self.codes: Int32s = np.zeros(capacity, dtype=np.int32)
        self.values: list[str | None] = [None]
        self._code_of: dict[str, int] = {}

    def find(self, value: str) -> int:
        """The code of ``value``, 0 where it was never seen."""
        return self._code_of.get(value, 0)

    def code(self, value: str) -> int:
        """The code of ``value``, a new one where it was never seen."""
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self.values)
            self.values.append(value)
        return code


class NodeColumns:
    """All nodes of the cluster and what runs on them in sum."""

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        self.count = 0
        self.row_of: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self._names: list[str] = []
        self._all_rows: Int64s = np.empty(0, dtype=np.int64)
        self.resources: list[str] = list(FIRST_RESOURCES)
        self.resource_index = {name: index for index, name in enumerate(FIRST_RESOURCES)}
        self.present: Bools = np.zeros(capacity, dtype=np.bool_)
        self.allocatable: Int64s = np.zeros((len(FIRST_RESOURCES), capacity), dtype=np.int64)
        self.requested: Int64s = np.zeros((len(FIRST_RESOURCES), capacity), dtype=np.int64)
        self.nonzero_requested: Int64s = np.zeros((2, capacity), dtype=np.int64)
        self.allowed_pods: Int64s = np.zeros(capacity, dtype=np.int64)
        self.pod_count: Int64s = np.zeros(capacity, dtype=np.int64)
        self.unschedulable: Bools = np.zeros(capacity, dtype=np.bool_)
        self.taint_group: Int32s = np.zeros(capacity, dtype=np.int32)
        self.taint_groups: list[tuple[Taint, ...]] = [()]
        self._taint_group_of: dict[tuple[Taint, ...], int] = {(): 0}
        self.name_hash: UInt64s = np.zeros(capacity, dtype=np.uint64)
        self._labels: dict[str, LabelColumn] = {}
        self._free: list[int] = []
        self.changes = ChangeLog()
        self.node_changes = ChangeLog()
        self.images = ImageTable()

    def __len__(self) -> int:
        return len(self.row_of)

    def name(self, row: int) -> str:
        """The name of the node in ``row``; raises KeyError for a free row."""
        name = self._names[row]
        if not name:
            raise KeyError(row)
        return name

    def all_rows(self) -> Int64s:
        """``[count]``: the numbers of all rows; not to be written to."""
        if len(self._all_rows) != self.count:
            self._all_rows = np.arange(self.count, dtype=np.int64)
            self._all_rows.flags.writeable = False
        return self._all_rows

    def names_by_row(self) -> list[str]:
        """A copy of the names of all rows, "" for free ones."""
        return list(self._names)

    def node(self, row: int) -> Node:
        """The node in ``row``; raises KeyError for a free row."""
        node = self.nodes[row]
        if node is None:
            raise KeyError(row)
        return node

    def resource(self, name: str) -> int:
        """The index of a resource along the first axis of ``allocatable`` and ``requested``."""
        index = self.resource_index.get(name)
        if index is None:
            index = self.resource_index[name] = len(self.resources)
            self.resources.append(name)
            row = np.zeros((1, self.capacity), dtype=np.int64)
            self.allocatable = np.concatenate([self.allocatable, row])
            self.requested = np.concatenate([self.requested, row])
        return index

    def labels(self, key: str) -> LabelColumn:
        """The column of a label key, made on first use."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(self.capacity)
            for row in self.row_of.values():
                self._write_label(key, column, row, self.node(row))
        return column

    def put(self, node: Node) -> int:
        """Add a node or replace the one of its name; returns its row."""
        name = node.metadata.name
        row = self.row_of.get(name)
        if row is None:
            row = self._new_row()
            self.row_of[name] = row
        self._write(row, node)
        self.changes.touch(row)
        self.node_changes.touch(row)
        return row

    def remove(self, name: str) -> int:
        """Forget a node; returns the row that it had. Its pods must have been taken off before."""
        row = self.row_of.pop(name)
        if self.pod_count[row]:
            raise ValueError(f"node {name} still has pods")
        self.images.remove(row)
        self.nodes[row] = None
        self._names[row] = ""
        self.present[row] = False
        self._free.append(row)
        self.changes.touch(row)
        self.node_changes.touch(row)
        return row

    def _new_row(self) -> int:
        if self._free:
            return self._free.pop()
        if self.count == self.capacity:
            self._grow(2 * self.capacity)
        self.nodes.append(None)
        self._names.append("")
        self.count += 1
        return self.count - 1

    def _grow(self, capacity: int) -> None:
        for column_name in (
            "present",
            "allocatable",
            "requested",
            "nonzero_requested",
            "allowed_pods",
            "pod_count",
            "unschedulable",
            "taint_group",
            "name_hash",
        ):
            setattr(self, column_name, grown(getattr(self, column_name), capacity))
        for column in self._labels.values():
            column.codes = grown(column.codes, capacity)
        self.capacity = capacity

    def _write(self, row: int, node: Node) -> None:
        self.nodes[row] = node
        self._names[row] = node.metadata.name
        self.present[row] = True
        amounts = node_allocatable(node.status)
        self.allowed_pods[row] = amounts.pop("pods", 0)
        indices = {self.resource(name): amount for name, amount in amounts.items()}
        self.allocatable[:, row] = 0
        for index, amount in indices.items():
            self.allocatable[index, row] = amount
        self.unschedulable[row] = node.spec.unschedulable
        self.taint_group[row] = self._taint_group(node.spec.taints)
        self.name_hash[row] = stable_hash(node.metadata.name)
        for key, column in self._labels.items():
            self._write_label(key, column, row, node)
        self.images.put(row, node)

    def _taint_group(self, taints: tuple[Taint, ...]) -> int:
        group = self._taint_group_of.get(taints)
        if group is None:
            group = self._taint_group_of[taints] = len(self.taint_groups)
            self.taint_groups.append(taints)
        return group

    def _write_label(self, key: str, column: LabelColumn, row: int, node: Node) -> None:
        value = node.metadata.name if key == NAME_FIELD else node.metadata.labels.get(key)
        column.codes[row] = 0 if value is None else column.code(value)


@dataclass(slots=True, eq=False)
class Image:
    """An image of some name: how large it is, and the rows that hold it."""

    size_bytes: int
    rows: set[int] = field(default_factory=set)


class ImageTable:
    """Which rows hold which image.

    An image has the size that the first node told of it, on every node, until no node holds it any more. So
    kube-scheduler counts (backend/cache/cache.go, addNodeImageStates and removeNodeImageStates), though the nodes may
    tell of different sizes, as those of several architectures do.
    """

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}
        self._names_in: dict[int, list[str]] = {}

    def find(self, name: str) -> Image | None:
        """The image of that name, None where no node holds it."""
        return self._images.get(name)

    def names_in(self, row: int) -> tuple[str, ...]:
        """The names of the images that a row holds."""
        return tuple(self._names_in.get(row, ()))

    def put(self, row: int, node: Node) -> None:
        """Read a node's list of images."""
        self.remove(row)
        if not node.status.images:
            return
        names = self._names_in[row] = []
        for listed in node.status.images:
            for name in listed.names:
                image = self._images.get(name)
                if image is None:
                    image = self._images[name] = Image(listed.size_bytes)
                image.rows.add(row)
                names.append(name)

    def remove(self, row: int) -> None:
        """Forget the images of a row."""
        for name in self._names_in.pop(row, ()):
            image = self._images.get(name)
            if image is not None:
                image.rows.discard(row)
                if not image.rows:
                    del self._images[name]
