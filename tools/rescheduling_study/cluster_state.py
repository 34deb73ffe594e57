"""The state of a simulated cluster: its nodes with their pods, and its GPUs."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from podium.api.devices import ResourceClaim, ResourceSlice
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.quantity import whole_value
from podium.api.resource_requests import node_allocatable, pod_requests, qos_class
from podium.sim.trace_import import MILLI_PER_GPU
from podium.store.store import Store
from tools.rescheduling_study.descheduler_rules import LoadedNode, RunningPod

LARGE_GPUS = 8
# The largest other requests of most pods of the trace with 8 GPUs.
_LARGE_CPU_MILLI = 64_200
_LARGE_MEMORY_BYTES = 263_168 * 2**20
_SYSTEM_CRITICAL = 2_000_000_000


@dataclass(frozen=True, slots=True)
class GPUs:
    """The GPUs of a node: their number, the number entirely free, and the held sum."""

    count: int
    free: int
    held_milli: int


class ClusterState:
    """The nodes, pods and devices in a store."""

    def __init__(self, store: Store) -> None:
        pods = [item.object for item in store.objects("Pod") if isinstance(item.object, Pod)]
        self._nodes = [item.object for item in store.objects("Node") if isinstance(item.object, Node)]
        self._on: defaultdict[str, list[Pod]] = defaultdict(list)
        self.waiting = [pod for pod in pods if not pod.spec.node_name and pod.status.phase == "Pending"]
        for pod in pods:
            if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed"):
                self._on[pod.spec.node_name].append(pod)
        self.gpus = _gpus(store)

    def nodes(self) -> list[LoadedNode]:
        """Return the nodes as descheduler sees them."""
        return [
            LoadedNode(
                node.metadata.name,
                {**node_allocatable(node.status)},
                [_running(pod) for pod in self._on[node.metadata.name]],
                not node.spec.unschedulable,
            )
            for node in self._nodes
        ]

    def places(self) -> int:
        """Return how many pods with 8 GPUs would find a node with room for them."""
        found = 0
        for node in self.nodes():
            gpus = self.gpus.get(node.name)
            cpu = node.allocatable["cpu"] - node.used("cpu")
            memory = node.allocatable["memory"] - node.used("memory")
            if gpus is not None and cpu >= _LARGE_CPU_MILLI and memory >= _LARGE_MEMORY_BYTES:
                found += gpus.free // LARGE_GPUS
        return found

    def in_use(self) -> int:
        """Return how many nodes have pods."""
        return sum(bool(pods) for pods in self._on.values())


def _running(pod: Pod) -> RunningPod:
    controller = pod.metadata.controller
    return RunningPod(
        key=pod.key,
        uid=pod.metadata.uid,
        requests=pod_requests(pod.spec),
        priority=pod.priority,
        qos=qos_class(pod.spec),
        is_removable=controller is not None
        and controller.kind != "DaemonSet"
        and pod.priority < _SYSTEM_CRITICAL
        and not pod.is_terminating,
    )


def _gpus(store: Store) -> dict[str, GPUs]:
    """Return the offered GPUs by node; a pool has its node's name."""
    held: Counter[tuple[str, str]] = Counter()
    for item in store.objects("ResourceClaim"):
        claim = item.object
        if isinstance(claim, ResourceClaim) and claim.status.allocation is not None:
            for result in claim.status.allocation.devices.results:
                held[result.pool, result.device] += whole_value(result.consumed_capacity.get("milli", MILLI_PER_GPU))
    found = {}
    for item in store.objects("ResourceSlice"):
        offered = item.object
        if isinstance(offered, ResourceSlice):
            pool = offered.spec.pool.name
            taken = [held[pool, device.name] for device in offered.spec.devices]
            found[pool] = GPUs(len(taken), taken.count(0), sum(taken))
    return found
