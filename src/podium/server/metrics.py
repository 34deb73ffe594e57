"""What nodes and pods use, as metrics.k8s.io tells it: what `kubectl top` shows.

A simulated container uses what it requests; what a pod says that it uses (`podium.dev/cpu-usage`,
`podium.dev/memory-usage`) its first container does. Of a node's cpu all together use no more than there is. Source:
k8s.io/metrics/pkg/apis/metrics/v1beta1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.quantity import milli_value, whole_value
from podium.api.resource_requests import requests_of
from podium.api.resources import CPU, MEMORY
from podium.api.times import format_time
from podium.api.use import Use
from podium.machines.kubelets.pod_annotations import CPU_USAGE, MEMORY_USAGE, readable
from podium.machines.kubelets.pod_uses import PodUse, is_running, pod_uses, uid_of

METRICS_VERSION = "metrics.k8s.io/v1beta1"
"""The API that they are served in."""

_WINDOW = "10s"


class Uses:
    """What the pods of a cluster use; ``pods`` are all there are, and ``nodes`` those that they are on."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
        known = {node.metadata.name: node for node in nodes}
        running: dict[str, list[Pod]] = {}
        for pod in pods:
            if is_running(pod):
                running.setdefault(pod.spec.node_name, []).append(pod)
        self._of_pod: dict[str, PodUse] = {}
        self._on_node: dict[str, Use] = {}
        for name, on_node in running.items():
            uses = pod_uses(known.get(name), on_node)
            self._of_pod.update(uses)
            cpu_milli = sum(each.use.cpu_milli for each in uses.values())
            self._on_node[name] = Use(cpu_milli, sum(each.use.memory_bytes for each in uses.values()))

    def of_pod(self, pod: Pod) -> Use | None:
        """What a pod uses; None for one that does not run."""
        found = self._of_pod.get(uid_of(pod))
        return None if found is None else found.use

    def on_node(self, node: Node) -> Use:
        """What all pods of a node use."""
        return self._on_node.get(node.metadata.name, Use(0, 0))


def pod_metrics_list(pods: Iterable[Pod], uses: Uses, now: int) -> Raw:
    """The PodMetricsList of those pods that run."""
    found = (pod_metrics(pod, uses, now) for pod in pods)
    return _list("PodMetrics", [metrics for metrics in found if metrics is not None])


def node_metrics_list(nodes: Iterable[Node], uses: Uses, now: int) -> Raw:
    """The NodeMetricsList of some nodes."""
    return _list("NodeMetrics", [_node_metrics(node, uses.on_node(node), now) for node in nodes])


def pod_metrics(pod: Pod, uses: Uses, now: int) -> Raw | None:
    """The PodMetrics of a pod; None of one that does not run."""
    use = uses.of_pod(pod)
    if use is None:
        return None
    containers = [{"name": name, "usage": _usage(used)} for name, used in _containers(pod, use).items()]
    return {**_head("PodMetrics", pod, now), "containers": containers}


def _node_metrics(node: Node, use: Use, now: int) -> Raw:
    return {**_head("NodeMetrics", node, now), "usage": _usage(use)}


def _containers(pod: Pod, use: Use) -> Mapping[str, Use]:
    """What each container uses of what the pod does."""
    annotations = readable(pod.metadata.annotations)
    requests = [requests_of(container.resources) for container in pod.spec.containers]
    cpu = _parts(use.cpu_milli, [milli_value(amounts.get(CPU, 0)) for amounts in requests], CPU_USAGE in annotations)
    memory = _parts(
        use.memory_bytes, [whole_value(amounts.get(MEMORY, 0)) for amounts in requests], MEMORY_USAGE in annotations
    )
    names = [container.name for container in pod.spec.containers]
    return {name: Use(*used) for name, *used in zip(names, cpu, memory, strict=True)}


def _parts(used: int, requested: Sequence[int], is_said: bool) -> list[int]:
    """How much each container uses: what it requests, or less where there is less; what the pod says the first one."""
    total = sum(requested)
    if is_said or not total:
        return [used, *(0 for _ in requested[1:])]
    parts = [used * amount // total for amount in requested]
    parts[0] += used - sum(parts)
    return parts


def _usage(use: Use) -> Raw:
    return {"cpu": f"{use.cpu_milli}m", "memory": f"{use.memory_bytes // 1_024}Ki"}


def _head(kind: str, object_: Kubernetes, now: int) -> Raw:
    found = object_.metadata
    metadata: Raw = {"name": found.name, "creationTimestamp": format_time(now)}
    if found.namespace:
        metadata["namespace"] = found.namespace
    if found.labels:
        metadata["labels"] = found.labels
    api = {"kind": kind, "apiVersion": METRICS_VERSION, "metadata": metadata}
    return {**api, "timestamp": format_time(now), "window": _WINDOW}


def _list(kind: str, items: list[Raw]) -> Raw:
    return {"kind": f"{kind}List", "apiVersion": METRICS_VERSION, "metadata": {}, "items": items}
