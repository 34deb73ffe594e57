"""What nodes and pods use, as metrics.k8s.io tells it: what `kubectl top` shows.

A simulated container uses what it requests; a pod that says how much memory it uses (`podium.dev/memory-usage`) uses
that, in its first container. Source: k8s.io/metrics/pkg/apis/metrics/v1beta1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.quantity import milli_value, whole_value
from podium.api.resources import CPU, MEMORY
from podium.api.times import format_time
from podium.machines.kubelets.pod_annotations import MEMORY_USAGE, memory_usage

METRICS_VERSION = "metrics.k8s.io/v1beta1"
"""The API that they are served in."""

_WINDOW = "10s"


def pod_metrics_list(pods: Iterable[Pod], now: int) -> Raw:
    """The PodMetricsList of those pods that run."""
    return _list("PodMetrics", [pod_metrics(pod, now) for pod in pods if is_measured(pod)])


def node_metrics_list(nodes: Iterable[Node], pods: Iterable[Pod], now: int) -> Raw:
    """The NodeMetricsList of nodes on which those pods are."""
    used: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for pod in pods:
        if is_measured(pod):
            cpu_milli, memory_bytes = _used(pod)
            on_node = used[pod.spec.node_name]
            on_node[0] += cpu_milli
            on_node[1] += memory_bytes
    return _list("NodeMetrics", [_node_metrics(node, used[node.metadata.name], now) for node in nodes])


def pod_metrics(pod: Pod, now: int) -> Raw:
    """The PodMetrics of a pod that runs."""
    containers = [{"name": name, "usage": _usage(*used)} for name, used in _containers(pod).items()]
    return {**_head("PodMetrics", pod, now), "containers": containers}


def is_measured(pod: Pod) -> bool:
    """Whether the pod uses anything: it runs on a node."""
    return pod.status.phase == "Running" and bool(pod.spec.node_name)


def _node_metrics(node: Node, used: Sequence[int], now: int) -> Raw:
    cpu_milli, memory_bytes = used
    return {**_head("NodeMetrics", node, now), "usage": _usage(cpu_milli, memory_bytes)}


def _used(pod: Pod) -> tuple[int, int]:
    found = _containers(pod).values()
    return sum(cpu for cpu, _ in found), sum(memory for _, memory in found)


def _containers(pod: Pod) -> Mapping[str, tuple[int, int]]:
    """What each container uses: cpu in milli, memory in bytes."""
    requests = {container.name: container.resources.requests for container in pod.spec.containers}
    used = {
        name: (milli_value(amounts.get(CPU, 0)), whole_value(amounts.get(MEMORY, 0)))
        for name, amounts in requests.items()
    }
    if MEMORY_USAGE in pod.metadata.annotations:
        said = memory_usage(pod.metadata.annotations)
        used = {name: (cpu, 0 if index else said) for index, (name, (cpu, _)) in enumerate(used.items())}
    return used


def _usage(cpu_milli: int, memory_bytes: int) -> Raw:
    return {"cpu": f"{cpu_milli}m", "memory": f"{memory_bytes // 1_024}Ki"}


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
