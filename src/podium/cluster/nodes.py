"""Nodes as columns: one row a node, one array a property.

Arrays are over-allocated; the first ``count`` entries are in use, and ``present`` tells which of them hold a node.
Rows of removed nodes are used again. Shapes: ``[rows]``, or ``[resources, rows]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from podium.api.node import Node, Taint
from podium.api.resource_requests import SUMMABLE_PODS, node_allocatable
from podium.cluster.arrays import Bools, Int32s, Int64s, UInt64s, grown, stable_hash
from podium.cluster.change_log import ChangeLog
from podium.cluster.codes import Codes, LabelColumn, Numbers
from podium.cluster.name_order import NameOrder

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage")
# A pseudo label key under which a node's name can be selected (matchFields knows this field only).
NAME_FIELD = "\0metadata.name"
# How many label columns may come before those are dropped that nobody has asked for meanwhile.
AT_LEAST = 16


class NodeColumns:
    """All nodes of the cluster and what runs on them in sum."""

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        self.count = 0
        self.row_of: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self.names: list[str] = []
        """By row, "" for free rows; not to be written to."""
        self._all_rows: Int64s = np.empty(0, dtype=np.int64)
        self._resources = Numbers("", FIRST_RESOURCES)
        # By row, the resources that the node names.
        self._named: dict[int, tuple[int, ...]] = {}
        self.present: Bools = np.zeros(capacity, dtype=np.bool_)
        self.allocatable: Int64s = np.zeros((len(FIRST_RESOURCES), capacity), dtype=np.int64)
        self.requested: Int64s = np.zeros((len(FIRST_RESOURCES), capacity), dtype=np.int64)
        self.nonzero_requested: Int64s = np.zeros((2, capacity), dtype=np.int64)
        self.allowed_pods: Int64s = np.zeros(capacity, dtype=np.int64)
        self.pod_count: Int64s = np.zeros(capacity, dtype=np.int64)
        self.entries = Entries()
        self.entries.renew(self)
        self.unschedulable: Bools = np.zeros(capacity, dtype=np.bool_)
        self.taint_group: Int32s = np.zeros(capacity, dtype=np.int32)
        self._taints: Codes[tuple[Taint, ...]] = Codes(())
        self.name_hash: UInt64s = np.zeros(capacity, dtype=np.uint64)
        self._labels: dict[str, LabelColumn] = {}
        self._until_sweep = AT_LEAST
        self._free: list[int] = []
        self._name_order: NameOrder | None = None
        self.changes = ChangeLog()
        self.placement_changes = ChangeLog()
        """Those of ``changes`` that filters and scores may see. The others are for preemption, which ranks pods."""
        self.node_changes = ChangeLog()
        self.images = ImageTable()

    def __len__(self) -> int:
        return len(self.row_of)

    def name(self, row: int) -> str:
        """The name of the node in ``row``; raises KeyError for a free row."""
        name = self.names[row]
        if not name:
            raise KeyError(row)
        return name

    def all_rows(self) -> Int64s:
        """``[count]``: the numbers of all rows; not to be written to."""
        if len(self._all_rows) != self.count:
            self._all_rows = np.arange(self.count, dtype=np.int64)
            self._all_rows.flags.writeable = False
        return self._all_rows

    def name_order(self) -> NameOrder:
        """The order of the nodes there are, made anew when one has come or gone."""
        if self._name_order is None:
            rows = np.flatnonzero(self.present[: self.count]).astype(np.int64)
            self._name_order = NameOrder(rows, self.name_hash[: self.count])
        return self._name_order

    def names_by_row(self) -> list[str]:
        """A copy of the names of all rows, "" for free ones."""
        return list(self.names)

    def node(self, row: int) -> Node:
        """The node in ``row``; raises KeyError for a free row."""
        node = self.nodes[row]
        if node is None:
            raise KeyError(row)
        return node

    @property
    def resources(self) -> list[str]:
        """The name of each resource along the first axis of ``allocatable`` and ``requested``; "" for free places."""
        return self._resources.values

    @property
    def resource_index(self) -> Mapping[str, int]:
        """The place of each resource there."""
        return self._resources.number_of

    def resource(self, name: str) -> int:
        """The place of a resource, for one user more: a node or a pod class that names it."""
        index = self._resources.take(name)
        if index == len(self.allocatable):
            row = np.zeros((1, self.capacity), dtype=np.int64)
            self.allocatable = np.concatenate([self.allocatable, row])
            self.requested = np.concatenate([self.requested, row])
            self.entries.renew(self)
        return index

    def give_back_resources(self, indices: Iterable[int]) -> None:
        """A node or a pod class that named these resources does so no more."""
        for index in indices:
            self._resources.give_back(index)

    def named_by(self, row: int) -> tuple[int, ...]:
        """The places of the resources that the node in ``row`` names."""
        return self._named.get(row, ())

    @property
    def taint_groups(self) -> list[tuple[Taint, ...]]:
        """The taints of the nodes of each ``taint_group``."""
        return self._taints.values

    def labels(self, key: str) -> LabelColumn:
        """The column of a label key, made on first use.

        A column that nobody asks for is dropped when half as many others have come as there were. It comes back with
        other codes; who keeps something by codes either pins the column, or looks whether it is still the same.
        """
        column = self._labels.get(key)
        if column is None:
            if not self._until_sweep:
                self._sweep()
            self._until_sweep -= 1
            column = self._labels[key] = LabelColumn(self.capacity)
            for row in self.row_of.values():
                column.write(row, _label(key, self.node(row)))
        column.asked = True
        return column

    def pin(self, key: str, number: int) -> None:
        """So many more (or fewer) keep something by the codes of a label key."""
        self.labels(key).pins += number

    def count_pod(self, row: int, requests: Mapping[int, int], nonzero: tuple[int, int], sign: int) -> None:
        """Book a pod on a row, or with ``sign`` -1 take it off; see `PodClass` for what it requests."""
        # Entries cannot hold the sums of more pods, which wrap around in arrays.
        columns = self.entries if self.entries.pod_count[row] < SUMMABLE_PODS else self
        requested, nonzero_requested = columns.requested, columns.nonzero_requested
        for resource, amount in requests.items():
            requested[resource][row] += sign * amount
        nonzero_requested[0][row] += sign * nonzero[0]
        nonzero_requested[1][row] += sign * nonzero[1]
        columns.pod_count[row] += sign
        self.entries.loads[row] = None

    def touch(self, row: int) -> None:
        """Note that a row changed in what filters and scores may look at."""
        self.changes.touch(row)
        self.placement_changes.touch(row)

    def put(self, node: Node) -> int:
        """Add a node or replace the one of its name; returns its row."""
        name = node.metadata.name
        row = self.row_of.get(name)
        if row is None:
            row = self._new_row()
            self.row_of[name] = row
            self._name_order = None
        self._write(row, node)
        self.touch(row)
        self.node_changes.touch(row)
        return row

    def remove(self, name: str) -> int:
        """Forget a node; returns the row that it had. Its pods must have been taken off before."""
        row = self.row_of.pop(name)
        if self.pod_count[row]:
            raise ValueError(f"node {name} still has pods")
        self.images.remove(row)
        self.allocatable[:, row] = 0
        self.give_back_resources(self._named.pop(row))
        for column in self._labels.values():
            column.write(row, None)
        self._taints.give_back(int(self.taint_group[row]))
        self.taint_group[row] = 0
        self.nodes[row] = None
        self.names[row] = ""
        self.present[row] = False
        self._name_order = None
        self._free.append(row)
        self.touch(row)
        self.node_changes.touch(row)
        return row

    def _new_row(self) -> int:
        if self._free:
            return self._free.pop()
        if self.count == self.capacity:
            self._grow(2 * self.capacity)
        self.nodes.append(None)
        self.names.append("")
        self.entries.loads.append(None)
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
        self.entries.renew(self)

    def _write(self, row: int, node: Node) -> None:
        self.nodes[row] = node
        self.names[row] = node.metadata.name
        self.present[row] = True
        amounts = node_allocatable(node.status)
        self.allowed_pods[row] = amounts.pop("pods", 0)
        indices = {self.resource(name): amount for name, amount in amounts.items()}
        self.allocatable[:, row] = 0
        self.give_back_resources(self._named.pop(row, ()))
        self._named[row] = tuple(indices)
        for index, amount in indices.items():
            self.allocatable[index, row] = amount
        self.entries.loads[row] = None
        self.unschedulable[row] = node.spec.unschedulable
        before = int(self.taint_group[row])
        self.taint_group[row] = self._taints.take(node.spec.taints)
        self._taints.give_back(before)
        self.name_hash[row] = stable_hash(node.metadata.name)
        for key, column in self._labels.items():
            column.write(row, _label(key, node))
        self.images.put(row, node)

    def _sweep(self) -> None:
        for key in [key for key, column in self._labels.items() if not (column.asked or column.pins)]:
            del self._labels[key]
        for column in self._labels.values():
            column.asked = False
        self._until_sweep = max(AT_LEAST, len(self._labels) // 2)


def _label(key: str, node: Node) -> str | None:
    return node.metadata.name if key == NAME_FIELD else node.metadata.labels.get(key)


RowLoad = tuple[bool, int, int, int, int, int, int, int | None]
"""What `podium.plugins.resource_rows` reads of a row: whether it may have one more pod, its cpu and memory, what is
taken of them, the same as it is rated, and how evenly they are taken (None where it has none of one)."""


class Entries:
    """Columns of `NodeColumns` to be read one entry at a time, in a fraction of the time that an array takes.

    They show the memory of the arrays. The lists are the same for good, so that they can be held: by resource, the
    column over rows. Who holds a column itself looks at ``renewals``, the number of times that all have given way to
    others.
    """

    __slots__ = ("allocatable", "allowed_pods", "loads", "nonzero_requested", "pod_count", "renewals", "requested")

    def __init__(self) -> None:
        self.allocatable: list[memoryview] = []
        self.requested: list[memoryview] = []
        self.nonzero_requested: list[memoryview] = []
        self.allowed_pods = self.pod_count = memoryview(b"")
        self.renewals = 0
        self.loads: list[RowLoad | None] = []
        """By row, what was read of it together; None since it has changed."""

    def renew(self, columns: NodeColumns) -> None:
        """Show the arrays that there are, after some have given way to larger ones."""
        self.allocatable[:] = [column.data for column in columns.allocatable]
        self.requested[:] = [column.data for column in columns.requested]
        self.nonzero_requested[:] = [column.data for column in columns.nonzero_requested]
        self.allowed_pods, self.pod_count = columns.allowed_pods.data, columns.pod_count.data
        self.renewals += 1


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
