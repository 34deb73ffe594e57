"""Which pending pods wait for room on which node.

Source: pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.cluster.nodes import NodeColumns
from podium.cluster.pod_groups import PodGroups
from podium.cluster.pods import PodRecord


class Nominations:
    """Nominated pods by node, and the node of each. A row changes when a nomination to it begins or ends.

    With ``reach_domains`` nominated pods count, for pods that are not more important, as if they were on their nodes
    already: also where filters look at pods of other nodes. kube-scheduler counts them for their nodes alone. How
    important they are, their groups have a say in (`PodGroups.priority_of`).
    """

    def __init__(self, nodes: NodeColumns, groups: PodGroups) -> None:
        self.reach_domains = False
        self._nodes = nodes
        self.priority = groups.priority_of
        """By which priority a nominated pod keeps its place."""
        self._node_of: dict[str, str] = {}
        self.uids = self._node_of.keys()
        """Those of all nominated pods, as things are: whether there are any is asked so for every pod."""
        self._pods_on: dict[str, dict[str, PodRecord]] = {}
        self._victims_of: dict[str, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._node_of)

    def __contains__(self, uid: str) -> bool:
        return uid in self._node_of

    def put(self, pod: PodRecord, node_name: str, victims: Iterable[str] | None = None) -> None:
        """Nominate ``pod`` to ``node_name``; an earlier nomination of it ends.

        ``victims`` are the pods (uids) that are deleted for it; None leaves them as they are, if the node is the same.
        """
        uid, before = pod.uid, self._node_of.get(pod.uid)
        if victims is None and before == node_name:
            if self._pods_on[node_name][uid] is pod:
                return
            victims = self._victims_of.get(uid)
        if before is not None:
            self.remove(uid)
        going = tuple(victims or ())
        if going:
            self._victims_of[uid] = going
        self._node_of[uid] = node_name
        self._pods_on.setdefault(node_name, {})[uid] = pod
        pod.nominated_node_name = node_name
        self._touch(node_name)

    def remove(self, uid: str) -> str:
        """End the nomination of a pod; returns the node it was for, or ""."""
        node_name = self._node_of.pop(uid, "")
        if node_name:
            self._victims_of.pop(uid, None)
            on_node = self._pods_on[node_name]
            on_node.pop(uid).nominated_node_name = ""
            if not on_node:
                del self._pods_on[node_name]
            self._touch(node_name)
        return node_name

    def node_of(self, uid: str) -> str:
        """The node that the pod is nominated to, or ""."""
        return self._node_of.get(uid, "")

    def victims_of(self, uid: str) -> tuple[str, ...]:
        """The pods (uids) that are deleted for a nominated pod."""
        return self._victims_of.get(uid, ())

    def victims(self) -> list[tuple[str, tuple[str, ...]]]:
        """Each nominated pod for which pods are deleted, and those (all uids)."""
        return list(self._victims_of.items())

    def on(self, node_name: str) -> list[PodRecord]:
        """The pods nominated to a node, the highest priority first, then by key."""
        on_node = self._pods_on.get(node_name)
        if on_node is None:
            return []
        pods = list(on_node.values())
        return pods if len(pods) < 2 else sorted(pods, key=self._order)

    def rivals(self, row: int, pod: PodRecord, own_uid: str) -> list[PodRecord]:
        """Of the pods nominated to the node in a row those that count for ``pod``, in the order of `on`.

        They are of at least its priority; that of ``own_uid`` does not count.
        """
        on_node = self._pods_on.get(self._nodes.names[row])
        if on_node is None:
            return []
        least, priority = pod.priority, self.priority
        pods: list[PodRecord] = []
        # A loop, since most nodes have one. No group makes a pod less important.
        for uid, other in on_node.items():
            if uid != own_uid and (other.priority >= least or priority(other) >= least):
                pods.append(other)
        return pods if len(pods) < 2 else sorted(pods, key=self._order)

    def rows(self) -> list[int]:
        """The rows of the nodes that some pod is nominated to, ascending; nodes that do not exist are left out."""
        row_of = self._nodes.row_of
        return sorted(row_of[name] for name in self._pods_on if name in row_of)

    def on_row(self, row: int) -> list[PodRecord]:
        """The pods nominated to the node in a row, as `on`."""
        name = self._nodes.names[row]
        return self.on(name) if name in self._pods_on else []

    def nodes(self) -> list[str]:
        """The nodes that some pod is nominated to, by name."""
        return sorted(self._pods_on)

    def all(self) -> list[tuple[PodRecord, str]]:
        """Every nominated pod with its node, by node then by falling priority."""
        return [(pod, node_name) for node_name in self.nodes() for pod in self.on(node_name)]

    def _order(self, pod: PodRecord) -> tuple[int, str]:
        return -self.priority(pod), pod.key

    def _touch(self, node_name: str) -> None:
        row = self._nodes.row_of.get(node_name)
        if row is not None:
            self._nodes.touch(row)
