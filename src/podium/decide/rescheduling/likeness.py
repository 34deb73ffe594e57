"""Which of several nodes are alike, so that it is enough to look at one of them."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from podium.cluster.arrays import Int64s
from podium.framework.rescheduling.picture import Picture

MOST_KINDS = 16
"""At so many different nodes is looked, to see which would gain least."""

_MOST_ROWS = 256


class Likeness:
    """Tells the nodes of a picture apart, as pods come and go.

    Nodes are alike that differ in nothing but their names: in what they offer and in what is requested of it, in
    labels, taints and signals, and in the classes and owners of their pods.
    """

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._nodes = picture.cluster.nodes
        self._position = self._nodes.changes.position
        # By what nodes say, a number for each that is said; and these and the pods by row.
        self._numbers: dict[Hashable, int] = {}
        self._of_node: dict[int, int] = {}
        self._of_pods: dict[int, Hashable] = {}

    def first(self, rows: Int64s) -> int:
        """The first of the rows that `unlike` gives."""
        return int(rows[self._nodes.name_hash[rows].argmin()])

    def unlike(self, rows: Int64s) -> tuple[list[int], bool]:
        """A row of each kind among some rows, in the order of their names' hashes; and whether that is all kinds."""
        if len(rows) == 1:
            return [int(rows[0])], True
        self._refresh()
        looked_at = rows[np.argsort(self._nodes.name_hash[rows], kind="stable")[:_MOST_ROWS]]
        kinds: dict[Hashable, int] = {}
        counts = self._nodes.pod_count[looked_at].tolist()
        for row, amounts, count in zip(looked_at.tolist(), self._amounts(looked_at), counts, strict=True):
            kinds.setdefault((amounts, self._node(row), self._pods(row) if count else None), row)
        found = list(kinds.values())
        return found[:MOST_KINDS], len(found) <= MOST_KINDS and len(rows) <= _MOST_ROWS

    def _refresh(self) -> None:
        """Forget what has changed."""
        log = self._nodes.changes
        changed = log.entries_since(self._position)
        self._position = log.position
        if changed is None:
            self._of_node.clear()
            self._of_pods.clear()
            return
        for row in changed:
            self._of_node.pop(row, None)
            self._of_pods.pop(row, None)

    def _amounts(self, rows: Int64s) -> list[bytes]:
        """What there is in numbers of each row."""
        nodes = self._nodes
        table = np.concatenate(
            [
                nodes.allocatable[:, rows],
                nodes.requested[:, rows],
                nodes.nonzero_requested[:, rows],
                nodes.allowed_pods[None, rows],
                nodes.pod_count[None, rows],
                nodes.taint_group[None, rows],
            ]
        )
        width = table.shape[0] * table.itemsize
        whole = np.ascontiguousarray(table.T).tobytes()
        return [whole[start : start + width] for start in range(0, len(whole), width)]

    def _node(self, row: int) -> int:
        """A number for what a node says beside its amounts: labels that are not its name, and signals."""
        number = self._of_node.get(row)
        if number is None:
            node = self._nodes.node(row)
            name = node.metadata.name
            labels = frozenset((key, value) for key, value in node.metadata.labels.items() if value != name)
            says = (labels, self._picture.signals.of_node(name))
            number = self._of_node[row] = self._numbers.setdefault(says, len(self._numbers))
        return number

    def _pods(self, row: int) -> Hashable:
        kind = self._of_pods.get(row)
        if kind is None:
            pods = self._picture.cluster.pods_on(row)
            kind = self._of_pods[row] = tuple(sorted([(pod.pod_class.id, pod.owner_uid) for pod in pods]))
        return kind
