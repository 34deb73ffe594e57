"""How a simulated cluster stands at one time: its nodes with their pods, and its GPUs."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from podium.api.devices import ResourceSlice
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.qos import qos_class
from podium.api.resource_claims import ResourceClaim
from podium.api.resource_requests import node_allocatable, pod_requests
from podium.sim.traces.openb import MILLI_PER_GPU
from podium.store.store import Store
from tools.rescheduling_study.descheduler_rules import LoadedNode, RunningPod

LARGE_GPUS = 8
# What most pods of the trace with 8 GPUs ask for beside them, or less.
_LARGE_CPU_MILLI = 64_200
_LARGE_MEMORY_BYTES = 263_168 * 2**20
_SYSTEM_CRITICAL = 2_000_000_000


@dataclass(frozen=True, slots=True)
class GPUs:
    """The GPUs of a node: how many there are, how many nobody holds a part of, and what is held in all."""

    count: int
    free: int
    held_milli: int


class ClusterState:
    """The nodes, pods and devices that a store holds."""

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
        """The nodes as descheduler sees them."""
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
        """How many pods that want 8 GPUs would find a node that has them."""
        found = 0
        for node in self.nodes():
            gpus = self.gpus.get(node.name)
            cpu = node.allocatable["cpu"] - node.used("cpu")
            memory = node.allocatable["memory"] - node.used("memory")
            if gpus is not None and cpu >= _LARGE_CPU_MILLI and memory >= _LARGE_MEMORY_BYTES:
                found += gpus.free // LARGE_GPUS
        return found

    def in_use(self) -> int:
        """How many nodes have pods."""
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
    """By node, the GPUs that are offered there. A pool is named after its node."""
    held: Counter[tuple[str, str]] = Counter()
    for item in store.objects("ResourceClaim"):
        claim = item.object
        if isinstance(claim, ResourceClaim) and claim.status.allocation is not None:
            for result in claim.status.allocation.devices.results:
                held[result.pool, result.device] += int(result.consumed_capacity.get("milli", MILLI_PER_GPU))
    found = {}
    for item in store.objects("ResourceSlice"):
        offered = item.object
        if isinstance(offered, ResourceSlice):
            pool = offered.spec.pool.name
            taken = [held[pool, device.name] for device in offered.spec.devices]
            found[pool] = GPUs(len(taken), taken.count(0), sum(taken))
    return found
