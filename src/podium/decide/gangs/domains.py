"""The topology domains in which a group's pods may be together, in the order in which they are tried.

Source: pkg/scheduler/framework/plugins/topologyaware/topology_placement.go. The order is Podium's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import CPU, MEMORY
from podium.cluster.pods import PodRecord

_MILLIONTHS = 1_000_000


@dataclass(frozen=True, slots=True)
class Domain:
    """The nodes with one value of the topology key: their rows, ascending."""

    name: str
    rows: Int64s


def domains_of(cluster: Cluster, key: str, placed: Sequence[PodRecord] = ()) -> tuple[tuple[Domain, ...], str]:
    """The domains that may take the pods of a group, and why none may, "" where some may.

    Where the group has pods ``placed``, the others have to join these. The fullest domain comes first, so that large
    gaps are kept for those who need them: the one with the least free share of CPU and memory, in whole millionths of
    what it has; then the first by name.
    """
    rows_of: dict[str, list[int]] = {}
    for row in sorted(cluster.nodes.row_of.values()):
        value = cluster.nodes.node(row).metadata.labels.get(key)
        if value is not None:
            rows_of.setdefault(value, []).append(row)
    if not rows_of:
        return (), f"no node has the label {key}"
    if placed:
        taken = {_domain_of(cluster, key, pod) for pod in placed}
        if len(taken) > 1:
            return (), f"pods of the group are in several domains of {key} already"
        (name,) = taken
        if name is None or name not in rows_of:
            return (), f"pods of the group are on nodes without the label {key} already"
        rows_of = {name: rows_of[name]}
    found = [Domain(name, np.array(rows, dtype=np.int64)) for name, rows in rows_of.items()]
    return tuple(sorted(found, key=lambda domain: (_free_share(cluster, domain.rows), domain.name))), ""


def _domain_of(cluster: Cluster, key: str, pod: PodRecord) -> str | None:
    row = cluster.nodes.row_of.get(pod.node_name)
    return None if row is None else cluster.nodes.node(row).metadata.labels.get(key)


def _free_share(cluster: Cluster, rows: Int64s) -> int:
    """What is free of CPU and memory in some rows, each in millionths of all that they have, added up."""
    nodes, free = cluster.nodes, 0
    for resource in (CPU, MEMORY):
        total = int(nodes.allocatable[resource, rows].sum())
        used = int(nodes.requested[resource, rows].sum())
        free += (total - used) * _MILLIONTHS // max(total, 1)
    return free
