"""What pods and nodes were measured to use, for as long as that holds."""

from __future__ import annotations

from dataclasses import replace

from podium.cluster.cluster import Cluster
from podium.framework.rescheduling.signals import NO_NODE_SIGNALS, NO_POD_SIGNALS, Signals
from podium.machines.observations import Measured

# Whoever measures does so every half a minute; what is so old is not how things are.
_HOLDS_NS = 300 * 10**9
_NOTHING = Measured({}, {})


class MeasuredUse:
    """Keeps the last measurement."""

    def __init__(self) -> None:
        self._last = _NOTHING
        self._time_ns = 0

    def take(self, measured: Measured, now: int) -> None:
        """Take in a measurement, in place of the one before."""
        self._last, self._time_ns = measured, now

    def told(self, signals: Signals, cluster: Cluster, now: int) -> Signals:
        """The signals, with what was measured of those that are there."""
        last = self._last
        if now - self._time_ns > _HOLDS_NS or not (last.pods or last.nodes):
            return signals
        pods, nodes = dict(signals.pods), dict(signals.nodes)
        for uid, pod in cluster.placed.items():
            use = last.pods.get(pod.key)
            if use is not None:
                known = pods.get(uid, NO_POD_SIGNALS)
                pods[uid] = replace(known, cpu_used_milli=use.cpu_milli, memory_used_bytes=use.memory_bytes)
        for name in cluster.nodes.row_of:
            use = last.nodes.get(name)
            if use is not None:
                of_node = nodes.get(name, NO_NODE_SIGNALS)
                nodes[name] = replace(of_node, cpu_used_milli=use.cpu_milli, memory_used_bytes=use.memory_bytes)
        return replace(signals, pods=pods, nodes=nodes)
