"""The order in which kube-scheduler examines nodes.

Source: pkg/scheduler/backend/cache/node_tree.go and cache.go (UpdateSnapshot, updateNodeInfoSnapshotList);
component-helpers/node/topology/helpers.go (GetZoneKey).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from podium.api.node import Node

_BETA = "failure-domain.beta.kubernetes.io/"
_TOPOLOGY = "topology.kubernetes.io/"


class NodeTree:
    """Node names by zone. Zones, and the nodes of each, are in the order in which they appeared."""

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
        name, zone = node.metadata.name, _zone_key(node)
        before = self._zone_of.get(name)
        if before == zone:
            return
        if before is None:
            self._unlisted ^= {name}
        else:
            self._leave(before, name)
        self._zone_of[name] = zone
        self._zones.setdefault(zone, {})[name] = None

    def remove(self, name: str) -> None:
        """Remove a node, and its zone if that is empty."""
        self._leave(self._zone_of.pop(name), name)
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

    def _leave(self, zone: str, name: str) -> None:
        del self._zones[zone][name]
        if not self._zones[zone]:
            del self._zones[zone]


def _zone_key(node: Node) -> str:
    labels = node.metadata.labels
    region, zone = (labels.get(_BETA + key, labels.get(_TOPOLOGY + key, "")) for key in ("region", "zone"))
    return f"{region}:\0:{zone}" if region or zone else ""
