"""Which pending pods wait for room on which node.

Source: pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from podium.cluster.pods import PodRecord


class Nominations:
    """Nominated pods by node, and the node of each."""

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, PodRecord]] = {}

    def __len__(self) -> int:
        return len(self._node_of)

    def __contains__(self, uid: str) -> bool:
        return uid in self._node_of

    def put(self, pod: PodRecord, node_name: str) -> None:
        """Nominate ``pod`` to ``node_name``; an earlier nomination of it ends."""
        self.remove(pod.uid)
        self._node_of[pod.uid] = node_name
        self._pods_on.setdefault(node_name, {})[pod.uid] = pod
        pod.nominated_node_name = node_name

    def remove(self, uid: str) -> str:
        """End the nomination of a pod; returns the node it was for, or ""."""
        node_name = self._node_of.pop(uid, "")
        if node_name:
            on_node = self._pods_on[node_name]
            on_node.pop(uid).nominated_node_name = ""
            if not on_node:
                del self._pods_on[node_name]
        return node_name

    def node_of(self, uid: str) -> str:
        """The node that the pod is nominated to, or ""."""
        return self._node_of.get(uid, "")

    def on(self, node_name: str) -> list[PodRecord]:
        """The pods nominated to a node, the highest priority first, then by key."""
        return sorted(self._pods_on.get(node_name, {}).values(), key=lambda pod: (-pod.priority, pod.key))

    def nodes(self) -> list[str]:
        """The nodes that some pod is nominated to, by name."""
        return sorted(self._pods_on)

    def all(self) -> list[tuple[PodRecord, str]]:
        """Every nominated pod with its node, by node then by falling priority."""
        return [(pod, node_name) for node_name in self.nodes() for pod in self.on(node_name)]
