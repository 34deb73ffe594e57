"""Groups of equal nodes that can be added to and taken from, and the nodes that are made for them.

Source: autoscaler cluster-autoscaler (cloudprovider.NodeGroup, utils/taints).
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import msgspec

from podium.api.meta import Raw
from podium.api.node import Node, Taint
from podium.api.reading import read

GROUP_LABEL = "podium.dev/node-group"
"""Says on a node to which group it belongs."""

STARTUP_TAINT = "startup-taint.cluster-autoscaler.kubernetes.io/starting"
"""Keeps pods off a node until it has started."""

REMOVAL_TAINT = "ToBeDeletedByClusterAutoscaler"
"""Keeps pods off a node that is about to be removed; the value is when that began, in seconds since 1970."""

STARTING = "NodeStarting"
"""The reason of Ready=False on a node that has not started yet."""

_HOSTNAME_LABEL = "kubernetes.io/hostname"
_OF_ONE = frozenset(("creationTimestamp", "managedFields", "resourceVersion", "uid"))
# What is known to go away once a starting node is ready.
_OF_A_START = frozenset((STARTUP_TAINT, "node.kubernetes.io/not-ready"))


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one kind. There may be ``minimum`` to ``maximum`` of them, those that are starting included.

    A node takes ``start_up_ns`` from the decision until it can run pods. ``template`` is a Node without a name.
    """

    name: str
    minimum: int
    maximum: int
    start_up_ns: int
    template: Raw

    def __post_init__(self) -> None:
        """Check the group. Raises ValueError, and InputError for a template that is no Node."""
        if not 0 <= self.minimum <= self.maximum:
            found = f"{self.minimum} to {self.maximum}"
            raise ValueError(f"node group {self.name}: {found} nodes is no range; 0 <= minimum <= maximum is needed")
        if self.start_up_ns < 0:
            raise ValueError(f"node group {self.name}: the start-up time is negative")
        read(self.template, Node)

    def node(self, name: str) -> Raw:
        """A new node of the group, as it is created: not ready, with the taint of a start.

        What the template may have had of a cluster, as one from a dump does, no other node has.
        """
        metadata = {name: value for name, value in self.template.get("metadata", {}).items() if name not in _OF_ONE}
        labels = {**metadata.get("labels", {}), GROUP_LABEL: self.name, _HOSTNAME_LABEL: name}
        spec: Raw = self.template.get("spec", {})
        taints = [*spec.get("taints", []), {"key": STARTUP_TAINT, "effect": "NoSchedule"}]
        ready = {"type": "Ready", "status": "False", "reason": STARTING, "message": "the node is starting"}
        return {
            **self.template,
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {**metadata, "name": name, "labels": labels},
            "spec": {**spec, "taints": taints},
            "status": {**self.template.get("status", {}), "conditions": [ready]},
        }

    def free_names(self, count: int, taken: Container[str]) -> list[str]:
        """Names for ``count`` more nodes, the smallest numbers first that no node has."""
        names: list[str] = []
        number = 0
        while len(names) < count:
            name = f"{self.name}-{number}"
            if name not in taken:
                names.append(name)
            number += 1
        return names


def is_starting(node: Node) -> bool:
    """Whether the node has not started yet."""
    return any(taint.key == STARTUP_TAINT for taint in node.spec.taints)


def started(node: Node) -> Node:
    """A starting node as it will be when it is ready; any other as it is."""
    if not is_starting(node):
        return node
    taints = tuple(taint for taint in node.spec.taints if taint.key not in _OF_A_START)
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))


def removal_taint(node: Node) -> Taint | None:
    """The mark of a node that is being removed; None on any other."""
    return next((taint for taint in node.spec.taints if taint.key == REMOVAL_TAINT), None)
