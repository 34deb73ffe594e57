"""The evictions of descheduler's LowNodeUtilization and HighNodeUtilization, reimplemented from their rules.

Both use requests as shares of allocatable amounts. They do not check whether pods fit elsewhere (`nodeFit` is off by
default) or which devices they hold.

Source of the rules: kubernetes-sigs/descheduler, pkg/framework/plugins/nodeutilization and its README.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

PODS = "pods"
BASIC = ("cpu", "memory", PODS)
_QOS = ("BestEffort", "Burstable", "Guaranteed")

Amounts = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RunningPod:
    """A pod on a node; ``is_removable``: descheduler may evict it, since a controller would replace it."""

    key: str
    uid: str
    requests: Amounts
    priority: int
    qos: str
    is_removable: bool


@dataclass(frozen=True, slots=True)
class LoadedNode:
    """A node with its pods."""

    name: str
    allocatable: Amounts
    pods: Sequence[RunningPod]
    is_schedulable: bool = True

    def used(self, resource: str) -> float:
        """Return the sum of its pods' requests."""
        if resource == PODS:
            return float(len(self.pods))
        return sum(pod.requests.get(resource, 0.0) for pod in self.pods)

    def percent(self, resource: str) -> float:
        """Return its pods' requests as a share of its resources."""
        has = self.allocatable.get(resource, 0.0)
        return 100 * self.used(resource) / has if has else 0.0


def low_node_utilization(nodes: Sequence[LoadedNode], low: Amounts, high: Amounts) -> list[RunningPod]:
    """Return pods of nodes above ``high`` in any resource.

    Pods are evicted until these nodes are below it, or the nodes below ``low`` in all resources are full up to
    ``high``. Nothing happens if no node, or every node, is below ``low``.
    """
    under = [node for node in nodes if node.is_schedulable and _is_below(node, low)]
    over = [node for node in nodes if node not in under and any(node.percent(name) > high[name] for name in high)]
    if not under or not over or len(under) == len(nodes):
        return []
    resources = sorted({*low, *BASIC})

    def room_up_to_high(node: LoadedNode, resource: str) -> float:
        return node.allocatable.get(resource, 0.0) * high.get(resource, 100.0) / 100

    def is_over(node: LoadedNode, used: Amounts) -> bool:
        return any(used[resource] > room_up_to_high(node, resource) for resource in resources)

    available = {
        resource: sum(room_up_to_high(node, resource) - node.used(resource) for node in under) for resource in resources
    }
    by_use = sorted(over, key=lambda node: (-sum(map(node.used, resources)), node.name))
    return _evicted(by_use, available, is_over)


def high_node_utilization(nodes: Sequence[LoadedNode], low: Amounts) -> list[RunningPod]:
    """Return the pods of nodes below ``low`` in all resources, as long as the other nodes have any room.

    Nothing happens if no node, or every node, is below ``low``.
    """
    marks = {**dict.fromkeys(BASIC, 100.0), **low}
    under = [node for node in nodes if _is_below(node, marks)]
    others = [node for node in nodes if node not in under and node.is_schedulable]
    if not under or not others or len(under) == len(nodes):
        return []
    available = {
        resource: sum(node.allocatable.get(resource, 0.0) - node.used(resource) for node in others)
        for resource in sorted(marks)
    }
    by_use = sorted(under, key=lambda node: (sum(map(node.used, sorted(marks))), node.name))
    return _evicted(by_use, available, lambda node, used: True)


def _is_below(node: LoadedNode, marks: Amounts) -> bool:
    return all(node.percent(name) <= marks[name] for name in marks)


def _evicted(
    nodes: Sequence[LoadedNode], available: dict[str, float], goes_on: Callable[[LoadedNode, Amounts], bool]
) -> list[RunningPod]:
    """Return pods node by node, by priority, then QoS class, while there is room elsewhere."""
    found: list[RunningPod] = []
    for node in nodes:
        used = {resource: node.used(resource) for resource in available}
        removable = [pod for pod in node.pods if pod.is_removable]
        for pod in sorted(removable, key=lambda pod: (pod.priority, _QOS.index(pod.qos), pod.key)):
            if not goes_on(node, used) or any(amount <= 0 for amount in available.values()):
                break
            found.append(pod)
            for resource in available:
                amount = 1.0 if resource == PODS else pod.requests.get(resource, 0.0)
                used[resource] -= amount
                available[resource] -= amount
    return found
