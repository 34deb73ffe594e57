"""What simulated pods use, as they say themselves: the same that metrics.k8s.io tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from podium.api.pod import Pod
from podium.api.use import Use
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import CPU, MEMORY
from podium.cluster.pods import PodRecord
from podium.decide.cpu_sharing import CPUWant, cpu_pressure, shared_cpu
from podium.framework.rescheduling.signals import NO_NODE_SIGNALS, NO_POD_SIGNALS, NodeSignals, PodSignals, Signals
from podium.machines.kubelets.pod_uses import cpu_want, is_running, memory_used, says_use


@dataclass(frozen=True, slots=True)
class _Said:
    """What a pod says that it would use if it were alone."""

    cpu: CPUWant
    memory_bytes: int


class SaidUse:
    """Keeps what pods say, and works out what they use beside the others on their nodes.

    Pods that say nothing use what they request. Where no pod says anything, nobody measures.
    """

    def __init__(self) -> None:
        self._said: dict[str, _Said] = {}

    def pod_changed(self, pod: Pod) -> bool:
        """Take in a pod; whether it says something else than before."""
        uid = pod.metadata.uid
        before = self._said.pop(uid, None)
        if says_use(pod) and is_running(pod):
            self._said[uid] = _Said(cpu_want(pod), memory_used(pod))
        return self._said.get(uid) != before

    def pod_gone(self, uid: str) -> None:
        """A pod is no more."""
        self._said.pop(uid, None)

    def told(self, signals: Signals, cluster: Cluster) -> Signals:
        """The signals, with what all use at the moment."""
        if not self._said:
            return signals
        pods, nodes = dict(signals.pods), dict(signals.nodes)
        saying = {pod.row for uid in self._said if (pod := cluster.placed.get(uid)) is not None}
        for name, row in cluster.nodes.row_of.items():
            if row in saying:
                used = self._on_row(cluster, row, pods)
            else:
                cpu = min(int(cluster.nodes.requested[CPU, row]), int(cluster.nodes.allocatable[CPU, row]))
                used = Use(cpu, int(cluster.nodes.requested[MEMORY, row]))
            nodes[name] = _measured_node(nodes, name, used)
        return replace(signals, pods=pods, nodes=nodes)

    def _on_row(self, cluster: Cluster, row: int, found: dict[str, PodSignals]) -> Use:
        """What all on a node use; each pod's signals are put among those ``found``."""
        pods = cluster.pods_on(row)
        said = [self._said.get(pod.uid) or _requested(pod) for pod in pods]
        got = shared_cpu([each.cpu for each in said], int(cluster.nodes.allocatable[CPU, row]))
        for pod, each, cpu_milli in zip(pods, said, got, strict=True):
            found[pod.uid] = replace(
                found.get(pod.uid, NO_POD_SIGNALS),
                cpu_used_milli=cpu_milli,
                memory_used_bytes=each.memory_bytes,
                cpu_pressure=cpu_pressure(each.cpu, cpu_milli),
            )
        return Use(sum(got), sum(each.memory_bytes for each in said))


def _requested(pod: PodRecord) -> _Said:
    requests = pod.pod_class.requests
    cpu_milli = requests.get(CPU, 0)
    return _Said(CPUWant(cpu_milli, cpu_milli), requests.get(MEMORY, 0))


def _measured_node(nodes: Mapping[str, NodeSignals], name: str, used: Use) -> NodeSignals:
    known = nodes.get(name, NO_NODE_SIGNALS)
    return replace(known, cpu_used_milli=used.cpu_milli, memory_used_bytes=used.memory_bytes)
