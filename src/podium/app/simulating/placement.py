"""Where pods are at the end of a simulation: of few nodes all that is shown, of many how full each is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.resize import effective_spec
from podium.api.resource_requests import node_allocatable, pod_requests
from podium.api.resources import CPU
from podium.sim.results.pod_states import NodeStates, PodState
from podium.store.store import Store

MOST_NODES = 20
"""Of so many nodes the pods are kept."""
MOST_PODS = 8
"""So many of a node's pods are kept, the most important first."""


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod on a node, and what it requests: cpu in milli, all else in units."""

    key: str
    priority: int
    state: PodState
    requests: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FilledNode:
    """A node: what is unusual about it, what it offers, how much of its cpu is requested, and its first pods."""

    name: str
    marks: tuple[str, ...]
    offered: Mapping[str, int]
    cpu_milli: int
    pods: tuple[PlacedPod, ...]
    further_pods: int

    @property
    def cpu_percent(self) -> int:
        """How much of its cpu is requested, in whole percent, rounded down."""
        return self.percent(CPU, self.cpu_milli)

    def percent(self, resource: str, amount: int) -> int:
        """The amount in whole percent of what the node offers; all of it where it offers none."""
        offered = self.offered.get(resource, 0)
        return 100 * amount // offered if offered else 100 * bool(amount)


def placement_of(store: Store, states: NodeStates) -> tuple[FilledNode, ...]:
    """The nodes by name, with the pods on them that have not ended."""
    pods: dict[str, list[Pod]] = {}
    for stored in store.objects("Pod"):
        pod = stored.object
        if isinstance(pod, Pod) and pod.spec.node_name and not pod.is_terminal:
            pods.setdefault(pod.spec.node_name, []).append(pod)
    nodes = {stored.key: stored.object for stored in store.objects("Node") if isinstance(stored.object, Node)}
    most_pods = MOST_PODS if len(nodes) <= MOST_NODES else 0
    return tuple(_filled(nodes[name], pods.get(name, []), states, most_pods) for name in sorted(nodes))


def _filled(node: Node, pods: list[Pod], states: NodeStates, most_pods: int) -> FilledNode:
    first = sorted(pods, key=lambda pod: (-pod.priority, pod.key))[:most_pods] if most_pods else []
    name = node.metadata.name
    return FilledNode(
        name,
        states.marks(name) if most_pods else (),
        node_allocatable(node.status),
        sum(pod_requests(effective_spec(pod)).get(CPU, 0) for pod in pods),
        tuple(
            PlacedPod(pod.key, pod.priority, states.state_of(pod), pod_requests(effective_spec(pod))) for pod in first
        ),
        len(pods) - len(first),
    )
