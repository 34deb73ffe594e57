"""Which of several nodes are alike, so that it is enough to look at one of them."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from podium.cluster.arrays import Int64s
from podium.framework.rescheduling.picture import Picture

MOST_KINDS = 16
"""At so many different nodes is looked, to see which would gain least."""

_MOST_ROWS = 256


def unlike(picture: Picture, rows: Int64s) -> tuple[list[int], bool]:
    """A row of each kind among some rows, in the order of their names' hashes; and whether that is all kinds.

    Nodes are alike that differ in nothing but their names: in what they offer and in what is requested of it, in
    labels, taints and signals, and in the classes and owners of their pods.
    """
    if len(rows) == 1:
        return [int(rows[0])], True
    looked_at = rows[np.argsort(picture.cluster.nodes.name_hash[rows], kind="stable")[:_MOST_ROWS]]
    numbers = _numbers(picture, looked_at)
    kinds: dict[Hashable, int] = {}
    for row, in_numbers in zip(looked_at.tolist(), numbers, strict=True):
        kinds.setdefault((in_numbers, _kind(picture, row)), row)
    found = list(kinds.values())
    return found[:MOST_KINDS], len(found) <= MOST_KINDS and len(rows) <= _MOST_ROWS


def _numbers(picture: Picture, rows: Int64s) -> list[bytes]:
    """What there is in numbers of each row."""
    nodes = picture.cluster.nodes
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
    return [column.tobytes() for column in np.ascontiguousarray(table.T)]


def _kind(picture: Picture, row: int) -> Hashable:
    """What else there is: labels that are not the node's name, signals, and the pods."""
    cluster = picture.cluster
    node = cluster.nodes.node(row)
    name = node.metadata.name
    labels = frozenset((key, value) for key, value in node.metadata.labels.items() if value != name)
    pods = tuple(sorted((pod.pod_class.id, pod.owner_uid) for pod in cluster.pods_on(row)))
    return labels, picture.signals.of_node(name), pods
