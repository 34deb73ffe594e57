"""How fast nodes that are not ready may be given up, zone by zone.

When many nodes fail at once, it is rather the control plane that does not see them.
Source: pkg/controller/nodelifecycle (ComputeZoneState, handleDisruption).
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.node import Node

_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_SECOND = 10**9
# The defaults of --node-eviction-rate, --secondary-node-eviction-rate, --large-cluster-size-threshold and
# --unhealthy-zone-threshold.
_INTERVAL_NS = 10 * _SECOND
_REDUCED_INTERVAL_NS = 100 * _SECOND
_LARGE_ZONE = 50
_UNHEALTHY_PERCENT = 55

Zone = tuple[str, ...]


@dataclass(slots=True)
class _Counts:
    healthy: int = 0
    unhealthy: int = 0
    given_up_ns: int | None = None


class ZoneDisruption:
    """Counts the nodes that are well.

    In a zone one node is given up every 10 s. Where more than two nodes and at least 55% of them are not well, it is
    one every 100 s in a zone of more than 50 nodes, and none in a smaller one; but every 10 s again where no node of
    the zone is well. When no node of the whole cluster is, none is given up.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[Zone, bool]] = {}
        self._zones: dict[Zone, _Counts] = {}
        self._healthy = 0

    def is_total(self) -> bool:
        """Whether no node of the cluster is well."""
        return not self._healthy

    def unhealthy(self) -> list[str]:
        """The nodes that are not well."""
        return [name for name, (_, is_healthy) in self._nodes.items() if not is_healthy]

    def put(self, node: Node, *, is_healthy: bool) -> bool:
        """Take in how a node is; whether that changes how fast nodes are given up."""
        zone = tuple(node.metadata.labels.get(label, "") for label in _LABELS)
        return self._replace(node.metadata.name, (zone, is_healthy))

    def remove(self, name: str) -> bool:
        """A node is gone; whether that changes how fast nodes are given up."""
        return self._replace(name, None)

    def may_give_up(self, name: str, now: int) -> bool:
        """Whether a node may be given up now."""
        next_ns = self.next_ns(name)
        return next_ns is not None and next_ns <= now

    def give_up(self, name: str, now: int) -> None:
        """A node is given up."""
        self._zones[self._nodes[name][0]].given_up_ns = now

    def next_ns(self, name: str) -> int | None:
        """When a node may be given up; None for never, as things are."""
        counts = self._zones[self._nodes[name][0]]
        interval_ns = self._interval_ns(counts)
        if interval_ns is None:
            return None
        return 0 if counts.given_up_ns is None else counts.given_up_ns + interval_ns

    def _interval_ns(self, counts: _Counts) -> int | None:
        if self.is_total():
            return None
        total = counts.healthy + counts.unhealthy
        is_partial = counts.unhealthy > 2 and counts.unhealthy * 100 >= _UNHEALTHY_PERCENT * total
        if not counts.healthy or not is_partial:
            return _INTERVAL_NS
        return _REDUCED_INTERVAL_NS if total > _LARGE_ZONE else None

    def _replace(self, name: str, after: tuple[Zone, bool] | None) -> bool:
        """Count a node as it is now; whether that changes how fast nodes are given up."""
        before = self._nodes.pop(name, None)
        if after is not None:
            self._nodes[name] = after
        counted = [node for node in (before, after) if node is not None]
        zones = [self._zones.setdefault(zone, _Counts()) for zone, _ in counted]
        paces = [self.is_total(), *map(self._interval_ns, zones)]
        for (zone, is_healthy), step in zip(counted, (1,) if before is None else (-1, 1), strict=False):
            counts = self._zones[zone]
            counts.healthy += step * is_healthy
            counts.unhealthy += step * (not is_healthy)
            self._healthy += step * is_healthy
        has_changed = paces != [self.is_total(), *map(self._interval_ns, zones)]
        for (zone, _), counts in zip(counted, zones, strict=True):
            if not (counts.healthy or counts.unhealthy):
                # A node that comes later is not given up before the interval is over in any case.
                self._zones.pop(zone, None)
        return has_changed
