"""What a pod is doing, as people mean it: its phase alone does not say whether it serves anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, get_args

from podium.api.node import Node
from podium.api.node_health import is_ready
from podium.api.pod import Pod
from podium.store.store import Store

PodState = Literal[
    "ready", "running", "starting", "pending", "lost", "terminating", "succeeded", "failed", "terminated"
]
"""The states of a pod.

`ready`: runs, and is ready. `running`: runs, and is not ready. `starting`: has a node, and does not run yet.
`pending`: waits for a node. `lost`: is on a node that is down, not ready or not there, so that nobody knows.
`terminating`: is being deleted. `succeeded`, `failed`: has ended. `terminated`: was deleted before it had ended.
"""

POD_STATES: tuple[PodState, ...] = get_args(PodState)


class NodeStates:
    """What the nodes of a cluster are like now. ``is_down`` says of a name whether the node's machine has stopped."""

    def __init__(self, store: Store, is_down: Callable[[str], bool]) -> None:
        self._is_down = is_down
        self._nodes: Mapping[str, Node] = {
            stored.key: stored.object for stored in store.objects("Node") if isinstance(stored.object, Node)
        }

    def marks(self, node: str) -> tuple[str, ...]:
        """What is to be said of a node beside its name: that it is down, not ready, or cordoned."""
        found = self._nodes.get(node)
        if found is None:
            return ("gone",)
        unwell = "down" if self._is_down(node) else "" if is_ready(found) else "not ready"
        return tuple(mark for mark in (unwell, "cordoned" if found.spec.unschedulable else "") if mark)

    def state_of(self, pod: Pod) -> PodState:
        """What a pod that the API still has is doing."""
        if pod.is_terminal:
            return "succeeded" if pod.status.phase == "Succeeded" else "failed"
        if pod.is_terminating:
            return "terminating"
        name = pod.spec.node_name
        if not name:
            return "pending"
        node = self._nodes.get(name)
        if node is None or self._is_down(name) or not is_ready(node):
            return "lost"
        if pod.status.phase != "Running":
            return "starting"
        ready = pod.status.condition("Ready")
        return "ready" if ready is not None and ready.status == "True" else "running"
