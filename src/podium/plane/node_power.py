"""Which nodes' machines have stopped, and who is told of it."""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.node import Node
from podium.api.node_health import READY, condition_status
from podium.machines.observations import NodeHeard, NodeSilent, NodeStarted, NodeStopped, Observation
from podium.plane.component_names import KUBELET, NODE_LIFECYCLE

POWER = "podium.dev/power"
"""On a Node: `off` stops its machine, with all that runs there, until it says otherwise or is taken away."""

_OFF = "off"

News = list[tuple[str, Observation]]
"""What components learn otherwise than from the API, each by the component's name."""


class NodePower:
    """Knows by name which machines are down, and since when.

    Of the ``nodes`` that are there from the start, those whose state is unknown were down before, and so were those
    that say so.
    """

    def __init__(self, nodes: Iterable[Node], start_ns: int) -> None:
        nodes = list(nodes)
        # Those that are down because their annotation says so.
        self._switched_off = {node.metadata.name for node in nodes if node.metadata.annotations.get(POWER) == _OFF}
        self._down = {
            node.metadata.name: start_ns
            for node in nodes
            if condition_status(node, READY) == "Unknown" or node.metadata.name in self._switched_off
        }

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

    def observe(self, node: Node, now: int) -> News:
        """The API shows a node: its machine stops or starts where its annotation says so."""
        name, power = node.metadata.name, node.metadata.annotations.get(POWER)
        if power == _OFF:
            self._switched_off.add(name)
            return self.change(name, now, is_up=False)
        if power is None and name not in self._switched_off:
            return []
        self._switched_off.discard(name)
        return self.change(name, now, is_up=True)

    def forget(self, name: str, now: int) -> News:
        """A node is gone from the API; one of its name that comes later is another machine."""
        self._switched_off.discard(name)
        return self.change(name, now, is_up=True)

    def news(self, component: str) -> list[Observation]:
        """What a component that begins anew has to be told before anything else."""
        if component == KUBELET:
            return [NodeStopped(node) for node in self._down]
        if component == NODE_LIFECYCLE:
            return [NodeSilent(node, since_ns) for node, since_ns in self._down.items()]
        return []
