"""The pods that have a node, by node."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from podium.api.meta import Raw
from podium.api.pod import Pod


class BoundPod(msgspec.Struct):
    """A pod as the API shows it, and its wire form, each time the newest."""

    pod: Pod
    raw: Raw


class BoundPods:
    """One pod for each key; of each node, in the order in which they came."""

    def __init__(self) -> None:
        self._pods: dict[str, BoundPod] = {}
        self._on: dict[str, dict[str, BoundPod]] = {}

    def put(self, pod: Pod, raw: Raw) -> None:
        """Take in a pod as it is now; one without a node takes the place of a namesake all the same."""
        key, name = pod.key, pod.spec.node_name
        known = self._pods.get(key)
        if known is None and not name:
            return
        if known is not None:
            if known.pod.metadata.uid != pod.metadata.uid:
                self.remove(key)
            elif known.pod.spec.node_name == name:
                known.pod, known.raw = pod, raw
                return
        if name:
            pods_on_node = self._on.get(name)
            if pods_on_node is None:
                pods_on_node = self._on[name] = {}
            self._pods[key] = pods_on_node[key] = BoundPod(pod, raw)

    def remove(self, key: str) -> None:
        """The pod of that key is gone."""
        known = self._pods.pop(key, None)
        if known is not None:
            pods_on_node = self._on[known.pod.spec.node_name]
            del pods_on_node[key]
            if not pods_on_node:
                del self._on[known.pod.spec.node_name]

    def find(self, key: str) -> BoundPod | None:
        """The pod, None where it is gone or has no node."""
        return self._pods.get(key)

    def on(self, node: str) -> Collection[BoundPod]:
        """The pods of a node."""
        return self._on.get(node, {}).values()
