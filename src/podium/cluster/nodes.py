"""Nodes as columns: a row for each node, an array for each property.

Arrays are over-allocated: the first ``count`` entries are in use, and ``present`` marks those that hold a node. Rows of
removed nodes are reused. Shapes: ``[rows]`` or ``[resources, rows]``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Generic, TypeVar

import numpy as np
from msgspec import Struct

from podium.api.node import Node, Taint, region_and_zone
from podium.api.resource_requests import SUMMABLE_PODS, node_allocatable
from podium.cluster.arrays import Bools, ChangeLog, Int32s, Int64s, UInt64s, grown, stable_hash, take_out

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage")
# A pseudo label key for the node's name, the only field that matchFields supports.
NAME_FIELD = "\0metadata.name"
# At least so many label columns are added between two sweeps, which drop those not used since the sweep before.
AT_LEAST = 16
_CAPACITY = 64


@dataclass(slots=True, eq=False)
class ColumnEntries:
    """Memory views of columns, to read single entries much faster than from arrays.

    The lists stay the same objects. A caller that keeps a view checks ``renewals``, which counts how often all views
    were replaced.
    """

    allocatable: list[memoryview] = field(default_factory=list)
    requested: list[memoryview] = field(default_factory=list)
    nonzero_requested: list[memoryview] = field(default_factory=list)
    allowed_pods: memoryview = field(init=False)
    pod_count: memoryview = field(init=False)
    renewals: int = 0

    def renew(self, columns: NodeColumns) -> None:
        """Replace the views after arrays were replaced by larger ones."""
        self.allocatable[:] = [column.data for column in columns.allocatable]
        self.requested[:] = [column.data for column in columns.requested]
        self.nonzero_requested[:] = [column.data for column in columns.nonzero_requested]
        self.allowed_pods, self.pod_count = columns.allowed_pods.data, columns.pod_count.data
        self.renewals += 1


class NodeImage(Struct, eq=False):
    """An image name, its size, and the rows that have it."""

    size_bytes: int
    rows: set[int] = set()


class ImageTable:
    """The images of each row.

    As in kube-scheduler (backend/cache/cache.go, addNodeImageStates and removeNodeImageStates), the first node that
    lists an image sets its size for all nodes, until no node has it any more.
    """

    def __init__(self) -> None:
        self._images: dict[str, NodeImage] = {}
        self._names_in: dict[int, list[str]] = {}

    def find(self, name: str) -> NodeImage | None:
        return self._images.get(name)

    def put(self, row: int, node: Node) -> None:
        """Replace a row's images by the node's list."""
        self.remove(row)
        if not node.status.images:
            return
        names = self._names_in[row] = []
        for listed in node.status.images:
            for name in listed.names:
                image = self._images.get(name)
                if image is None:
                    image = self._images[name] = NodeImage(listed.size_bytes)
                image.rows.add(row)
                names.append(name)

    def remove(self, row: int) -> None:
        for name in self._names_in.pop(row, ()):
            if (image := self._images.get(name)) is not None:
                image.rows.discard(row)
                if not image.rows:
                    del self._images[name]


class NameOrder:
    """All nodes in the order of their names' hashes: ``rows[rank]`` and ``rank_of[row]``.

    Valid until a node is added or removed.
    """

    def __init__(self, rows: Int64s, name_hash: UInt64s) -> None:
        hashes, bits = name_hash[rows], len(rows).bit_length()
        # Index and upper bits are packed into one number, since numpy sorts numbers much faster than it argsorts them.
        packed = hashes >> bits
        packed <<= bits
        packed |= np.arange(len(hashes), dtype=np.uint64)
        packed.sort()
        order: Int64s = (packed & ((1 << bits) - 1)).view(np.int64)
        packed >>= bits
        # Hashes that are equal in the upper bits are rare and sorted in the slow way.
        if (packed[1:] == packed[:-1]).any():
            order = np.argsort(hashes, kind="stable")
        in_order: Int64s = rows[order]
        ranks = np.full(len(name_hash), -1, dtype=np.int64)
        ranks[in_order] = np.arange(len(in_order), dtype=np.int64)
        self.ranks: Int64s = ranks
        self.rows = in_order.data
        self.rank_of = ranks.data


class NodeTree:
    """The order in which kube-scheduler examines nodes: node names by zone.

    Zones, and the nodes of each, are in the order in which they appeared. Source:
    pkg/scheduler/backend/cache/node_tree.go and cache.go (UpdateSnapshot, updateNodeInfoSnapshotList);
    component-helpers/node/topology/helpers.go (GetZoneKey).
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._zones: dict[str, dict[str, None]] = {}
        self._zone_of: dict[str, str] = {}
        self._names: list[str] = []
        # The names that are in the tree but not in the last order, or the other way around.
        self._unlisted: set[str] = set()
        for node in nodes:
            self.put(node)

    def put(self, node: Node) -> None:
        """Add a node, or move it to the end of its new zone if it has another one than before."""
        name = node.metadata.name
        region, zone = region_and_zone(node.metadata.labels)
        zone = f"{region}:\0:{zone}" if region or zone else ""
        before = self._zone_of.get(name)
        if before == zone:
            return
        if before is None:
            self._unlisted ^= {name}
        else:
            take_out(self._zones, before, name)
        self._zone_of[name] = zone
        self._zones.setdefault(zone, {})[name] = None

    def remove(self, name: str) -> None:
        """Remove a node, and its zone if that is empty."""
        take_out(self._zones, self._zone_of.pop(name), name)
        self._unlisted ^= {name}

    def order(self) -> list[str]:
        """Return all names: the first node of each zone, then the second of each, and so on.

        As in kube-scheduler, the order is computed when a node has been added or removed since the last call. A change
        of a zone alone counts from then on.
        """
        if self._unlisted:
            self._unlisted.clear()
            self._names = [name for turn in zip_longest(*self._zones.values()) for name in turn if name is not None]
        return self._names


Value = TypeVar("Value", bound=Hashable)


class RefCountedNumbers(Generic[Value]):
    """Reference-counted numbers of values: ``values[number]`` and ``number_of[value]``.

    A number without users means ``blank`` until another value gets it. The ``first`` values keep theirs.
    """

    def __init__(self, blank: Value, first: Iterable[Value]) -> None:
        self._blank = blank
        self.values = list(first)
        self.number_of = {value: number for number, value in enumerate(self.values)}
        self._users = [1] * len(self.values)
        self._free: list[int] = []

    def take(self, value: Value) -> int:
        """Return the number of ``value`` and count one more user."""
        number = self.number_of.get(value)
        if number is None:
            number = self.number_of[value] = self._free.pop() if self._free else len(self.values)
            if number == len(self.values):
                self.values.append(value)
                self._users.append(0)
            else:
                self.values[number] = value
        self._users[number] += 1
        return number

    def give_back(self, number: int) -> None:
        """Count one user fewer."""
        self._users[number] -= 1
        if not self._users[number]:
            del self.number_of[self.values[number]]
            self.values[number] = self._blank
            self._free.append(number)


class ValueCodes(RefCountedNumbers[Value]):
    """Codes of row values. Rows have code 0, that of ``blank``, until they get another value."""

    def __init__(self, blank: Value) -> None:
        super().__init__(blank, (blank,))

    def find(self, value: Value) -> int:
        """Return the code of ``value``, 0 if no row has it."""
        return self.number_of.get(value, 0)

    def take(self, value: Value) -> int:
        """Return the code of ``value`` and count one more row."""
        return 0 if value == self._blank else super().take(value)

    def give_back(self, code: int) -> None:
        """Count one row fewer."""
        if code:
            super().give_back(code)


class LabelColumn(ValueCodes[str | None]):
    """The values of one label key: ``codes[row]`` is 0 for nodes without the label.

    ``is_used``: used since the last sweep. ``pins``: how many caches depend on the codes. ``version`` changes with
    every code.
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(None)
        self.codes: Int32s = np.zeros(capacity, dtype=np.int32)
        self.is_used = True
        self.pins = self.version = 0
        self._labelled = 0

    @property
    def domains(self) -> int:
        """Return the number of distinct values."""
        return len(self.number_of) - 1

    @property
    def is_single(self) -> bool:
        """Return whether each value belongs to one node only, as with hostnames."""
        return self._labelled == self.domains

    def write(self, row: int, value: str | None) -> None:
        before, after = int(self.codes[row]), self.take(value)
        self.codes[row] = after
        self.version += after != before
        self.give_back(before)
        self._labelled += (value is not None) - (before != 0)


# CPython reads attributes of objects that have more than 30, and no slots, more slowly.
@dataclass(slots=True, eq=False)
class NodeColumns:
    """All nodes, and the sums of the pods on them."""

    capacity: int = _CAPACITY
    count: int = 0
    row_of: dict[str, int] = field(default_factory=dict)
    nodes: list[Node | None] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """By row, "" for free rows; read-only."""
    _all_rows: Int64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _resources: RefCountedNumbers[str] = field(default_factory=lambda: RefCountedNumbers("", FIRST_RESOURCES))
    # The name of each resource along the first axis of ``allocatable``, "" for free indices; and the index by name.
    resources: list[str] = field(init=False)
    resource_index: dict[str, int] = field(init=False)
    # By row, the indices of the resources that the node lists.
    named: dict[int, tuple[int, ...]] = field(default_factory=dict)
    present: Bools = field(default_factory=lambda: np.zeros(_CAPACITY, dtype=np.bool_))
    allocatable: Int64s = field(default_factory=lambda: np.zeros((len(FIRST_RESOURCES), _CAPACITY), dtype=np.int64))
    requested: Int64s = field(default_factory=lambda: np.zeros((len(FIRST_RESOURCES), _CAPACITY), dtype=np.int64))
    nonzero_requested: Int64s = field(default_factory=lambda: np.zeros((2, _CAPACITY), dtype=np.int64))
    allowed_pods: Int64s = field(default_factory=lambda: np.zeros(_CAPACITY, dtype=np.int64))
    pod_count: Int64s = field(default_factory=lambda: np.zeros(_CAPACITY, dtype=np.int64))
    entries: ColumnEntries = field(default_factory=ColumnEntries)
    unschedulable: Bools = field(default_factory=lambda: np.zeros(_CAPACITY, dtype=np.bool_))
    taint_group: Int32s = field(default_factory=lambda: np.zeros(_CAPACITY, dtype=np.int32))
    _taints: ValueCodes[tuple[Taint, ...]] = field(default_factory=lambda: ValueCodes(()))
    # The taints of each ``taint_group``.
    taint_groups: list[tuple[Taint, ...]] = field(init=False)
    name_hash: UInt64s = field(default_factory=lambda: np.zeros(_CAPACITY, dtype=np.uint64))
    _labels: dict[str, LabelColumn] = field(default_factory=dict)
    # The first new column sets it.
    _until_sweep: int = 0
    _free: list[int] = field(default_factory=list)
    _name_order: NameOrder | None = None
    # None until it is needed.
    _tree: NodeTree | None = None
    _tree_order: Int64s | None = None
    search_start: int = 0
    """The index in `tree_order` where a scheduler's next search for a node starts (nextStartNodeIndex)."""
    changes: ChangeLog = field(default_factory=ChangeLog)
    node_changes: ChangeLog = field(default_factory=ChangeLog)
    images: ImageTable = field(default_factory=ImageTable)

    def __post_init__(self) -> None:
        self.resources, self.resource_index = self._resources.values, self._resources.number_of
        self.taint_groups = self._taints.values
        self.entries.renew(self)

    def __len__(self) -> int:
        return len(self.row_of)

    def name(self, row: int) -> str:
        """Return the name of the node in ``row``; raises KeyError for a free row."""
        name = self.names[row]
        if not name:
            raise KeyError(row)
        return name

    def all_rows(self) -> Int64s:
        """Return ``[count]`` the numbers of all rows; read-only."""
        if len(self._all_rows) != self.count:
            self._all_rows = np.arange(self.count, dtype=np.int64)
            self._all_rows.flags.writeable = False
        return self._all_rows

    def name_order(self) -> NameOrder:
        """Return the order of the present nodes, cached until a node is added or removed."""
        if self._name_order is None:
            rows = np.flatnonzero(self.present[: self.count]).astype(np.int64)
            self._name_order = NameOrder(rows, self.name_hash[: self.count])
        return self._name_order

    def tree_order(self) -> Int64s:
        """Return the rows of all nodes in the order in which kube-scheduler examines them (see `NodeTree`).

        The first call takes the nodes that exist as added in the order of `row_of`.
        """
        if self._tree is None:
            self._tree = NodeTree(map(self.node, self.row_of.values()))
        if self._tree_order is None:
            self._tree_order = np.array([self.row_of[name] for name in self._tree.order()], dtype=np.int64)
        return self._tree_order

    def node(self, row: int) -> Node:
        """Return the node in ``row``; raises KeyError for a free row."""
        node = self.nodes[row]
        if node is None:
            raise KeyError(row)
        return node

    def resource(self, name: str) -> int:
        """Return the index of a resource, and count one more node or pod class that uses it."""
        index = self._resources.take(name)
        if index == len(self.allocatable):
            row = np.zeros((1, self.capacity), dtype=np.int64)
            self.allocatable = np.concatenate([self.allocatable, row])
            self.requested = np.concatenate([self.requested, row])
            self.entries.renew(self)
        return index

    def give_back_resources(self, indices: Iterable[int]) -> None:
        """Release resources that a node or pod class no longer uses."""
        for index in indices:
            self._resources.give_back(index)

    def labels(self, key: str) -> LabelColumn:
        """Return the column of a label key, created on first use.

        A sweep drops columns that were not used since the one before; a new column has other codes. A cache of codes
        either pins the column or checks that it is still the same object.
        """
        column = self._labels.get(key)
        if column is None:
            if not self._until_sweep:
                self._sweep()
            self._until_sweep -= 1
            column = self._labels[key] = LabelColumn(self.capacity)
            for row in self.row_of.values():
                column.write(row, _label(key, self.node(row)))
        column.is_used = True
        return column

    def count_pod(self, row: int, requests: Mapping[int, int], nonzero: tuple[int, int], sign: int) -> None:
        """Add a pod to a row, or remove it with ``sign`` -1; see `PodClass` for its requests."""
        # Memory views raise an error on overflow; the sums of more pods wrap around as in arrays.
        columns = self.entries if self.entries.pod_count[row] < SUMMABLE_PODS else self
        requested, nonzero_requested = columns.requested, columns.nonzero_requested
        for resource, amount in requests.items():
            requested[resource][row] += sign * amount
        nonzero_requested[0][row] += sign * nonzero[0]
        nonzero_requested[1][row] += sign * nonzero[1]
        columns.pod_count[row] += sign

    def put(self, node: Node) -> int:
        """Add or replace a node; return its row."""
        name = node.metadata.name
        row = self.row_of.get(name)
        if row is None:
            if self._free:
                row = self._free.pop()
            else:
                row = self.count
                if row == self.capacity:
                    self._grow(2 * self.capacity)
                self.nodes.append(None)
                self.names.append("")
                self.count += 1
            self.row_of[name] = row
            self._name_order = self._tree_order = None
        self._write(row, node)
        if self._tree is not None:
            self._tree.put(node)
        self.changes.touch(row)
        self.node_changes.touch(row)
        return row

    def remove(self, name: str) -> int:
        """Remove a node without pods; return its former row."""
        row = self.row_of.pop(name)
        if self.pod_count[row]:
            raise ValueError(f"node {name} still has pods")
        self.images.remove(row)
        self.allocatable[:, row] = 0
        self.give_back_resources(self.named.pop(row))
        for column in self._labels.values():
            column.write(row, None)
        self._taints.give_back(int(self.taint_group[row]))
        self.taint_group[row] = 0
        self.nodes[row] = None
        self.names[row] = ""
        self.present[row] = False
        self._name_order = self._tree_order = None
        if self._tree is not None:
            self._tree.remove(name)
        self._free.append(row)
        self.changes.touch(row)
        self.node_changes.touch(row)
        return row

    def _grow(self, capacity: int) -> None:
        amounts = ("allocatable", "requested", "nonzero_requested", "allowed_pods", "pod_count")
        for column_name in (*amounts, "present", "unschedulable", "taint_group", "name_hash"):
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
        self.give_back_resources(self.named.pop(row, ()))
        self.named[row] = tuple(indices)
        for index, amount in indices.items():
            self.allocatable[index, row] = amount
        self.unschedulable[row] = node.spec.unschedulable
        before = int(self.taint_group[row])
        self.taint_group[row] = self._taints.take(node.spec.taints)
        self._taints.give_back(before)
        self.name_hash[row] = stable_hash(node.metadata.name)
        for key, column in self._labels.items():
            column.write(row, _label(key, node))
        self.images.put(row, node)

    def _sweep(self) -> None:
        for key in [key for key, column in self._labels.items() if not (column.is_used or column.pins)]:
            del self._labels[key]
        for column in self._labels.values():
            column.is_used = False
        self._until_sweep = max(AT_LEAST, len(self._labels) // 2)


def _label(key: str, node: Node) -> str | None:
    return node.metadata.name if key == NAME_FIELD else node.metadata.labels.get(key)
