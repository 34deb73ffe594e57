"""Views of the cluster for filters and scores: rows as arrays, and single nodes as objects.

A `View` shows the cluster as it is; its subclass `WhatIfView` with some pods added or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from podium.api.devices import DeviceTaint, DeviceToleration
from podium.api.node import UNSCHEDULABLE, Node, Taint
from podium.api.pod import Toleration
from podium.api.selectors import NodeTerm, Requirement
from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.matchers import Predicate
from podium.cluster.nodes import NAME_FIELD, NodeColumns
from podium.cluster.pods import PodRecord

if TYPE_CHECKING:
    from podium.cluster.cluster import Cluster


class ResourceAmounts(dict[str, int]):
    """Amounts by resource name; 0 for missing ones."""

    __slots__ = ()

    def __missing__(self, name: str) -> int:
        return 0


class NodeView(msgspec.Struct, frozen=True):
    """One node and its pods, for plugins in the simple form.

    ``allocatable`` and ``requested`` map resource names to amounts (cpu in milli, others in whole units); 0 for others.
    """

    node: Node
    pods: tuple[PodRecord, ...]
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    allowed_pods: int

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels


def make_node_view(nodes: NodeColumns, row: int, pods: Iterable[PodRecord], requested: Sequence[int]) -> NodeView:
    """Return the node of a row with some pods and requests. Raises KeyError for a free row."""
    names, named = nodes.resources, nodes.named.get(row, ())
    allocatable: list[int] = nodes.allocatable[:, row].tolist()
    return NodeView(
        node=nodes.node(row),
        pods=tuple(pods),
        allocatable=ResourceAmounts({names[i]: amount for i, amount in enumerate(allocatable) if amount or i in named}),
        requested=ResourceAmounts({names[i]: amount for i, amount in enumerate(requested) if amount or i in named}),
        allowed_pods=int(nodes.allowed_pods[row]),
    )


class NodeViews:
    """A cache of `NodeView` objects, by row."""

    def __init__(self, nodes: NodeColumns, on_row: Sequence[Mapping[int, PodRecord]]) -> None:
        self._nodes = nodes
        # By row, the pods by slot.
        self._on_row = on_row
        # By row, None if not cached; empty until first used.
        self._kept: npt.NDArray[np.object_] = np.empty(0, dtype=np.object_)
        # The uncached rows below the array's end.
        self._forgotten: set[int] = set()

    def forget(self, row: int) -> None:
        """Drop a changed row."""
        if row < len(self._kept):
            self._kept[row] = None
            self._forgotten.add(row)

    def of(self, row: int) -> NodeView:
        """Return the node of a row. Raises KeyError for a free one."""
        if row >= len(self._kept):
            self._forgotten.update(range(len(self._kept), self._nodes.count))
            self._kept = np.append(self._kept, np.full(self._nodes.count - len(self._kept), None, dtype=np.object_))
        found: NodeView | None = self._kept[row]
        if found is None:
            requested = self._nodes.requested[:, row].tolist()
            on_row = self._on_row[row]
            pods = [on_row[slot] for slot in sorted(on_row)]
            found = self._kept[row] = make_node_view(self._nodes, row, pods, requested)
            self._forgotten.discard(row)
        return found

    def of_all(self, rows: Int64s) -> list[NodeView]:
        """Return the nodes of some rows. Raises KeyError for a free one."""
        nodes = self._nodes
        if len(self._kept) != nodes.count or 2 * len(rows) <= nodes.count or not nodes.present[rows].all():
            return [self.of(row) for row in rows.tolist()]
        # Nearly all are cached: only the others are made.
        for row in [row for row in self._forgotten if nodes.present[row]]:
            self.of(row)
        found: list[NodeView] = self._kept[rows].tolist()
        return found


PIECE_ROWS = 1 << 14

Elsewhere = tuple[Int64s, Int64s, int]
"""Pods on other rows than a position's own: position and row of each pod; 1 if they joined, -1 if they left."""


class View:
    """The cluster on some rows.

    ``rows`` is ``[n]`` row numbers; methods return arrays whose last axis is ``[n]`` in that order. Without rows, a
    view shows all of them, free rows included.
    """

    def __init__(self, cluster: Cluster, rows: Int64s | slice | None = None) -> None:
        """``rows`` may be a slice, which avoids copies."""
        self.cluster = cluster
        self._slice: slice | Int64s = slice(cluster.nodes.count) if rows is None else rows
        self.rows: Int64s = rows if isinstance(rows, np.ndarray) else cluster.nodes.all_rows()[self._slice]

    @classmethod
    def pieces(cls, cluster: Cluster) -> Iterator[View]:
        """Yield views of all rows, in order, small enough that intermediate results fit a processor's cache."""
        count = cluster.nodes.count
        for start in range(0, max(count, 1), PIECE_ROWS):
            yield cls(cluster, slice(start, min(start + PIECE_ROWS, count)))

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the entries of a column for the rows of this view."""
        return column[..., self._slice]

    def allocatable(self, resource: int | Int64s) -> Int64s:
        """Return the allocatable amounts of a resource; ``[resources, n]`` for several."""
        return self._cells(self.cluster.nodes.allocatable, resource)

    def requested(self, resource: int | Int64s) -> Int64s:
        """Return the amounts of a resource that the nodes' pods request; ``[resources, n]``, copied, for several."""
        return self._cells(self.cluster.nodes.requested, resource)

    def nonzero_requested(self, resource: Int64s) -> Int64s:
        """Return `requested` for cpu and memory, with defaults for containers that request none (see `PodClass`)."""
        return self._cells(self.cluster.nodes.nonzero_requested, resource)

    def _cells(self, table: Int64s, resource: int | Int64s) -> Int64s:
        if isinstance(resource, int):
            return self.take(table[resource])
        is_slice = isinstance(self._slice, slice)
        cells: Int64s = table[resource, self._slice] if is_slice else table[resource[:, None], self.rows]
        return cells

    def pod_count(self) -> Int64s:
        return self.take(self.cluster.nodes.pod_count)

    def codes(self, label: str) -> Int32s:
        """Return the codes of a label's values (see `LabelColumn`)."""
        return self.take(self.cluster.nodes.labels(label).codes)

    def by_taints(self, value_of: Callable[[tuple[Taint, ...]], int]) -> Int64s:
        """Return ``[n]`` a number that depends on each node's taints alone, computed once for equal taints."""
        values = np.array([value_of(taints) for taints in self.cluster.nodes.taint_groups], dtype=np.int64)
        found: Int64s = values[self.take(self.cluster.nodes.taint_group)]
        return found

    def count(self, predicate: Predicate) -> Int64s:
        """Return the number of matching pods on each node."""
        return self.take(self.cluster.matcher(predicate).count)

    def domain_count(self, predicate: Predicate, key: str) -> Int64s:
        """Return the number of matching pods in each node's domain of a topology key; 0 for nodes without the label."""
        counts: Int64s = self.cluster.domain_counts(predicate, key)[self.codes(key)]
        counts[self.codes(key) == 0] = 0
        return counts

    def labelled_count(self, predicate: Predicate, key: str) -> Int64s:
        """Return the number of matching pods on all nodes that have a topology key."""
        return np.full(len(self), self.cluster.domain_counts(predicate, key)[1:].sum(), dtype=np.int64)

    def change(self, predicate: Predicate) -> Int64s | None:
        """Return by how much the matching pods on each row differ from the cluster's; None if not at all.

        Terminating pods that join or leave count, whatever the predicate says: see `WhatIfView`.
        """
        return None

    def elsewhere(self, predicate: Predicate) -> Iterable[Elsewhere]:
        """Return the matching pods that joined or left on other rows than the own one, without `everywhere`."""
        return ()

    def everywhere(self, predicate: Predicate) -> Iterable[Int64s]:
        """Return the rows of matching pods that joined all positions; those on the own row are also in `change`."""
        return ()

    def is_held(self, predicate: Predicate) -> Bools:
        """Return where some pod matches, kept as a set instead of a count: the first pod to leave clears the entry."""
        return self.count(predicate) > 0

    def pods(self, position: int) -> list[PodRecord]:
        """Return the pods on the node at a position of this view."""
        return self.cluster.pods_on(int(self.rows[position]))

    def node(self, position: int) -> NodeView:
        """Return the node at a position of this view, in the simple form."""
        return self.cluster.node_views.of(int(self.rows[position]))

    def nodes(self, positions: Int64s | None = None) -> list[NodeView]:
        """Return the nodes at some positions of this view (default: all), in the simple form."""
        return self.cluster.node_views.of_all(self.rows if positions is None else self.rows[positions])


UNSCHEDULABLE_TAINT = Taint(key=UNSCHEDULABLE, effect="NoSchedule")
KEEPS_OFF = ("NoSchedule", "NoExecute")


def tolerates(toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint) -> bool:
    """Return whether a toleration accepts a taint, of nodes or of devices."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    is_equal = toleration.operator in ("", "Equal") and toleration.value == taint.value
    return is_equal or toleration.operator == "Exists"


def tolerated(tolerations: Iterable[Toleration | DeviceToleration], taint: Taint | DeviceTaint) -> bool:
    """Return whether any of the tolerations accepts the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def repelling_taints(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> Iterator[Taint]:
    """Yield the NoSchedule and NoExecute taints that the tolerations do not accept."""
    return (taint for taint in taints if taint.effect in KEEPS_OFF and not tolerated(tolerations, taint))


def kept_off(tolerations: tuple[Toleration, ...], view: View) -> Bools:
    """Return ``[n]`` the nodes with a taint that repels a pod with these tolerations."""
    return view.by_taints(lambda taints: any(repelling_taints(tolerations, taints))).astype(np.bool_)


def matching_rows(view: View, terms: tuple[NodeTerm, ...]) -> Bools:
    """Return ``[n]`` where any of the terms matches."""
    matches = np.zeros(len(view), dtype=np.bool_)
    for term in terms:
        matches |= matching_term(view, term)
    return matches


def matching_term(view: View, term: NodeTerm) -> Bools:
    """Return ``[n]`` where every condition of the term holds; nowhere for a term without conditions."""
    if not term.labels and not term.fields:
        return np.zeros(len(view), dtype=np.bool_)
    matches = np.ones(len(view), dtype=np.bool_)
    for requirement in term.labels:
        matches &= _holds(view, requirement.key, requirement)
    for requirement in term.fields:
        matches &= _holds(view, NAME_FIELD, requirement)
    return matches


def _holds(view: View, label: str, requirement: Requirement) -> Bools:
    column = view.cluster.nodes.labels(label)
    if requirement.operator in ("In", "NotIn"):
        # Names have as many values as there are nodes, so look up only the wanted ones.
        table = np.zeros(len(column.values), dtype=np.bool_)
        table[[column.find(value) for value in requirement.values]] = True
        table[0] = False
        if requirement.operator == "NotIn":
            table = ~table
    else:
        answers = (requirement.matches(value) for value in column.values)
        table = np.fromiter(answers, dtype=np.bool_, count=len(column.values))
    held: Bools = table[view.codes(label)]
    return held
