"""What a DaemonSet's pods come to, node by node.

Source: pkg/controller/daemon/daemon_controller.go (updateDaemonSetStatus), update.go (rollingUpdate).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from podium.machines.workloads.owned_pods import OwnedPod
from podium.machines.workloads.template_revisions import is_outdated


@dataclass(frozen=True, slots=True)
class NodeCount:
    """What one node adds to the counts of a DaemonSet's status.

    ``in_service``: whether the node is to have a pod, and has one that is available and was not deleted.
    ``replaceable``: the one pod of an old template that can be exchanged, None where there is none.
    """

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    in_service: int = 0
    replaceable: OwnedPod | None = None


_NUMBERS = ("desired", "current", "misscheduled", "ready", "available", "updated", "in_service")


def count_node(pods: Iterable[OwnedPod], present: str, available: Iterable[OwnedPod], *, is_wanted: bool) -> NodeCount:
    """The counts of a node: its first pod stands for it, in the order of `daemon_order`.

    ``present`` is the label of the present template, ``available`` are the pods that count as such.
    """
    ordered = sorted(pods, key=daemon_order)
    if not is_wanted or not ordered:
        return NodeCount(desired=int(is_wanted), misscheduled=int(not is_wanted and bool(ordered)))
    first, serving = ordered[0], {pod.uid for pod in available}
    kept = [pod for pod in ordered if pod.is_active]
    old = [pod for pod in kept if is_outdated(pod.pod, present)]
    return NodeCount(
        desired=1,
        current=1,
        ready=int(first.is_ready),
        available=int(first.uid in serving),
        updated=int(not is_outdated(first.pod, present)),
        in_service=int(any(pod.uid in serving for pod in kept)),
        replaceable=old[0] if len(kept) == len(old) == 1 else None,
    )


def daemon_order(pod: OwnedPod) -> tuple[bool, int, str]:
    """Of several pods on a node those with a node come first, then the older."""
    return not pod.pod.spec.node_name, pod.created_ns, pod.pod.metadata.name


@dataclass(slots=True)
class DaemonCounts:
    """The counts of all nodes, their sums, and the nodes with a pod that can be exchanged."""

    nodes: dict[str, NodeCount] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_NUMBERS, 0))
    replaceable: dict[str, OwnedPod] = field(default_factory=dict)

    def put(self, node_name: str, count: NodeCount) -> None:
        """Replace the count of a node."""
        before = self.nodes.pop(node_name, NodeCount())
        for name in _NUMBERS:
            self.sums[name] += getattr(count, name) - getattr(before, name)
        self.replaceable.pop(node_name, None)
        if count.replaceable is not None:
            self.replaceable[node_name] = count.replaceable
        if count != NodeCount():
            self.nodes[node_name] = count
