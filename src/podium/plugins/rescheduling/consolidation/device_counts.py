"""How many devices of a class each node has, and how many of them its pods hold.

A pod that is moved leaves its devices and takes as many elsewhere, though its claims still name those that it had.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from podium.api.devices import DeviceClass
from podium.api.resource_claims import ResourceClaim
from podium.cluster.allocated_devices import DeviceID
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.plugins.dynamic_resources.errors import AllocationError
from podium.plugins.dynamic_resources.pools import Candidate, gather_pools
from podium.plugins.dynamic_resources.selectors import Selectors


class DeviceCounts:
    """The devices of one class; ``offered`` are those that each row's node can use."""

    def __init__(self, cluster: Cluster, device_class: DeviceClass, selectors: Selectors) -> None:
        self._cluster = cluster
        self._members: set[DeviceID] = set()
        self.offered: Int64s = np.zeros(cluster.nodes.count, dtype=np.int64)
        devices = cluster.devices
        for name, row in sorted(cluster.nodes.row_of.items()):
            if not any(devices.shared) and not any(devices.on_node(name)):
                continue
            found = {
                candidate.id
                for pool in gather_pools(devices, cluster.nodes.node(row))
                for candidate in pool.candidates
                if _is_in(device_class, candidate, selectors)
            }
            self._members |= found
            self.offered[row] = len(found)

    def free(self, rows: Int64s) -> Int64s:
        """``[rows]``: the devices that no pod on the node holds."""
        held = np.fromiter((self.held_on(int(row)) for row in rows), dtype=np.int64, count=len(rows))
        free: Int64s = np.maximum(self.offered[rows] - held, 0)
        return free

    def held_on(self, row: int) -> int:
        """How many of them the pods on a node hold."""
        return len(self._held_by(self._cluster.pods_on(row)))

    def held_by(self, pod: PodRecord) -> int:
        """How many of them a pod holds."""
        return len(self._held_by([pod]))

    def _held_by(self, pods: Iterable[PodRecord]) -> set[DeviceID]:
        claims = (claim for pod in pods for claim in claims_of(pod, self._cluster))
        return {device for claim in claims for device in claim.devices if device in self._members}


def claims_of(pod: PodRecord, cluster: Cluster) -> list[ResourceClaim]:
    """The claims of a pod that there are: those it names, those made for it, and that for its extended resources."""
    devices, made = cluster.devices, dict(pod.made_claims)
    names = [
        each.resource_claim_name if each.resource_claim_name is not None else made.get(each.name)
        for each in pod.spec.resource_claims
    ]
    found = [devices.claims.get(f"{pod.namespace}/{name}") for name in names if name is not None]
    return [claim for claim in (*found, devices.book.made_for(pod.uid)) if claim is not None]


def _is_in(device_class: DeviceClass, candidate: Candidate, selectors: Selectors) -> bool:
    try:
        return selectors.match(device_class.spec.selectors, candidate.id[0], candidate.device, device_class.key)
    except AllocationError:
        return False
