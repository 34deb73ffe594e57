"""What pods and nodes are measured to use, as somebody has asked for it who can: nobody can watch it.

Source: k8s.io/metrics/pkg/apis/metrics/v1beta1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from podium.api.use import Use
from podium.cluster.cluster import Cluster
from podium.framework.rescheduling.signals import NO_NODE_SIGNALS, NO_POD_SIGNALS, Signals


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """What was measured at one time: of pods by key (`namespace/name`), of nodes by name."""

    pods: Mapping[str, Use] = field(default_factory=dict)
    nodes: Mapping[str, Use] = field(default_factory=dict)

    def told(self, signals: Signals, cluster: Cluster) -> Signals:
        """The signals with what was measured; of who is not measured they say what they said."""
        if not self.pods and not self.nodes:
            return signals
        pods, nodes = dict(signals.pods), dict(signals.nodes)
        for pod in cluster.placed.values():
            use = self.pods.get(pod.key)
            if use is not None:
                known = pods.get(pod.uid, NO_POD_SIGNALS)
                pods[pod.uid] = replace(known, cpu_used_milli=use.cpu_milli, memory_used_bytes=use.memory_bytes)
        for name in cluster.nodes.row_of:
            use = self.nodes.get(name)
            if use is not None:
                of_node = nodes.get(name, NO_NODE_SIGNALS)
                nodes[name] = replace(of_node, cpu_used_milli=use.cpu_milli, memory_used_bytes=use.memory_bytes)
        return replace(signals, pods=pods, nodes=nodes)
