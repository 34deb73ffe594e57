"""What filters and scores look at: some rows of the cluster, as arrays.

A `View` shows the cluster as it is. Its subclass `Worlds` shows, on each row, what the cluster would be if some pods of
that row alone were gone or added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.matchers import Predicate
from podium.cluster.node_view import NodeView
from podium.cluster.pods import PodRecord

if TYPE_CHECKING:
    from podium.cluster.cluster import Cluster


__all__ = ["Elsewhere", "NodeView", "View"]

PIECE_ROWS = 1 << 14

Elsewhere = tuple[Int64s, Int64s, int]
"""Pods that are not on a position's own row: position and pod's row of each; 1 if they joined, -1 if they left."""


class View:
    """The cluster on some rows.

    ``rows`` is ``[n]`` row numbers; every method answers with arrays whose last axis is ``[n]``, in that order. A view
    made without rows shows all of them, free rows included.
    """

    def __init__(self, cluster: Cluster, rows: Int64s | slice | None = None) -> None:
        """``rows`` may be a slice of all rows: their entries are looked at where they are, and not gathered."""
        self.cluster = cluster
        self._slice: slice | Int64s = slice(cluster.nodes.count) if rows is None else rows
        self.rows: Int64s = rows if isinstance(rows, np.ndarray) else cluster.nodes.all_rows()[self._slice]

    @classmethod
    def pieces(cls, cluster: Cluster) -> Iterator[View]:
        """Views of all rows, in order, of so many each that what is worked out of one fits a processor's cache."""
        count = cluster.nodes.count
        for start in range(0, max(count, 1), PIECE_ROWS):
            yield cls(cluster, slice(start, min(start + PIECE_ROWS, count)))

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The entries of a column over rows, for the rows of this view."""
        return column[..., self._slice]

    def allocatable(self, resource: int | Int64s) -> Int64s:
        """What the nodes have of a resource; ``[resources, n]`` for several."""
        return self._cells(self.cluster.nodes.allocatable, resource)

    def requested(self, resource: int | Int64s) -> Int64s:
        """What the pods on the nodes request of a resource; ``[resources, n]``, and a copy, for several."""
        return self._cells(self.cluster.nodes.requested, resource)

    def nonzero_requested(self, resource: Int64s) -> Int64s:
        """As `requested` for cpu and memory, with defaults for containers that request none (see `PodClass`)."""
        return self._cells(self.cluster.nodes.nonzero_requested, resource)

    def _cells(self, table: Int64s, resource: int | Int64s) -> Int64s:
        if isinstance(resource, int):
            return self.take(table[resource])
        is_slice = isinstance(self._slice, slice)
        cells: Int64s = table[resource, self._slice] if is_slice else table[resource[:, None], self.rows]
        return cells

    def pod_count(self) -> Int64s:
        """How many pods are on the nodes."""
        return self.take(self.cluster.nodes.pod_count)

    def codes(self, label: str) -> Int32s:
        """The codes of a label's values (see `LabelColumn`)."""
        return self.take(self.cluster.nodes.labels(label).codes)

    def count(self, predicate: Predicate) -> Int64s:
        """How many pods on the nodes match."""
        return self.take(self.cluster.matcher(predicate).count)

    def domain_count(self, predicate: Predicate, key: str) -> Int64s:
        """How many pods in the nodes' domains of a topology key match; 0 where a node lacks the label."""
        counts: Int64s = self.cluster.domain_counts(predicate, key)[self.codes(key)]
        counts[self.codes(key) == 0] = 0
        return counts

    def labelled_count(self, predicate: Predicate, key: str) -> Int64s:
        """How many pods match on all nodes that have a topology key."""
        total = self.cluster.domain_counts(predicate, key)[1:].sum()
        return np.full(len(self), total, dtype=np.int64)

    def change(self, predicate: Predicate) -> Int64s | None:
        """By how much the number of matching pods on each row differs from the cluster's; None for not at all.

        Terminating pods that join or leave count, whatever the predicate says: see `Worlds`.
        """
        return None

    def elsewhere(self, predicate: Predicate) -> Iterable[Elsewhere]:
        """The matching pods by which other rows than a position's own differ from the cluster, as it counts them.

        Those of `everywhere` are left out.
        """
        return ()

    def everywhere(self, predicate: Predicate) -> Iterable[Int64s]:
        """The rows of matching pods that have joined all positions; that of their own row is in `change` as well."""
        return ()

    def is_held(self, predicate: Predicate) -> Bools:
        """Where some pod matches, in a book that keeps no count: the last pod to leave takes the entry with it."""
        return self.count(predicate) > 0

    def pods(self, position: int) -> list[PodRecord]:
        """The pods on the node at a position of this view."""
        return self.cluster.pods_on(int(self.rows[position]))

    def node(self, position: int) -> NodeView:
        """The node at a position of this view, in the simple form."""
        return self.cluster.node_views.of(int(self.rows[position]))

    def nodes(self, positions: Int64s | None = None) -> list[NodeView]:
        """The nodes at some positions of this view, or at all, in the simple form."""
        return self.cluster.node_views.of_all(self.rows if positions is None else self.rows[positions])
