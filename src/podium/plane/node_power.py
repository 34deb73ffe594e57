"""Which nodes' machines have stopped, and who is told of it."""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.node import Node
from podium.api.node_health import READY, condition_status
from podium.machines.observations import NodeHeard, NodeSilent, NodeStarted, NodeStopped, Observation
from podium.plane.switches import KUBELET, NODE_LIFECYCLE

News = list[tuple[str, Observation]]
"""What components learn otherwise than from the API, each by the component's name."""


class NodePower:
    """Knows by name which machines are down, and since when.

    Of the ``nodes`` that are there from the start, those whose state is unknown were down before.
    """

    def __init__(self, nodes: Iterable[Node], start_ns: int) -> None:
        self._down = {node.metadata.name: start_ns for node in nodes if condition_status(node, READY) == "Unknown"}

    def is_down(self, node: str) -> bool:
        """Whether the node's machine has stopped."""
        return node in self._down

    def change(self, node: str, now: int, *, is_up: bool) -> News:
        """A node's machine stops or starts: its kubelet, and who hears its heartbeat; nothing when it is so already."""
        if is_up is (node not in self._down):
            return []
        if is_up:
            del self._down[node]
            return [(KUBELET, NodeStarted(node)), (NODE_LIFECYCLE, NodeHeard(node))]
        self._down[node] = now
        return [(KUBELET, NodeStopped(node)), (NODE_LIFECYCLE, NodeSilent(node, now))]

    def news(self, component: str) -> list[Observation]:
        """What a component that begins anew has to be told before anything else."""
        if component == KUBELET:
            return [NodeStopped(node) for node in self._down]
        if component == NODE_LIFECYCLE:
            return [NodeSilent(node, since_ns) for node, since_ns in self._down.items()]
        return []
