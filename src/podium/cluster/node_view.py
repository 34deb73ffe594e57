"""One node and the pods on it, as plugins in the simple form see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from podium.api.node import Node
from podium.cluster.arrays import Int64s
from podium.cluster.nodes import NodeColumns
from podium.cluster.pods import PodRecord


class Amounts(dict[str, int]):
    """Amounts by resource name; 0 for a resource that is not there."""

    __slots__ = ()

    def __missing__(self, name: str) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node and the pods on it, for plugins in the simple form.

    ``allocatable`` and ``requested`` map resource names to amounts: cpu in milli, others in whole units. They list what
    the node or a pod on it names, and say 0 for everything else.
    """

    node: Node
    pods: tuple[PodRecord, ...]
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    allowed_pods: int

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.metadata.labels


def make_node_view(nodes: NodeColumns, row: int, pods: Iterable[PodRecord], requested: Sequence[int]) -> NodeView:
    """The node of a row with some pods, which request so much of each resource. Raises KeyError for a free row."""
    names, named = nodes.resources, nodes.named_by(row)
    allocatable: list[int] = nodes.allocatable[:, row].tolist()
    return NodeView(
        node=nodes.node(row),
        pods=tuple(pods),
        allocatable=Amounts({names[i]: amount for i, amount in enumerate(allocatable) if amount or i in named}),
        requested=Amounts({names[i]: amount for i, amount in enumerate(requested) if amount or i in named}),
        allowed_pods=int(nodes.allowed_pods[row]),
    )


class NodeViews:
    """The nodes as they are, made when they are asked for, and kept until their rows change."""

    def __init__(self, nodes: NodeColumns, on_row: Sequence[Mapping[int, PodRecord]]) -> None:
        self._nodes = nodes
        # By row, the pods by slot.
        self._on_row = on_row
        # By row; None where it is not known. Without entries until somebody asks.
        self._kept: npt.NDArray[np.object_] = np.empty(0, dtype=np.object_)
        # The rows that are not known though others are.
        self._forgotten: set[int] = set()

    def forget(self, row: int) -> None:
        """The node of a row, or a pod on it, is not what it was."""
        if row < len(self._kept):
            self._kept[row] = None
            self._forgotten.add(row)

    def of(self, row: int) -> NodeView:
        """The node of a row. Raises KeyError for a free one."""
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
        """The nodes of some rows. Raises KeyError for a free one."""
        nodes = self._nodes
        if len(self._kept) == nodes.count and 2 * len(rows) > nodes.count and nodes.present[rows].all():
            # Nearly all are known: only those are looked at which are not.
            for row in [row for row in self._forgotten if nodes.present[row]]:
                self.of(row)
            found: list[NodeView] = self._kept[rows].tolist()
            return found
        return [self.of(row) for row in rows.tolist()]
