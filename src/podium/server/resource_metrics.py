"""The resource metrics of metrics.k8s.io, for `kubectl top`.

A simulated container uses what it requests. A usage stated by the pod (`podium.dev/cpu-usage`,
`podium.dev/memory-usage`) is attributed to its first container. The total cpu usage of a node is limited to its
capacity. Source: k8s.io/metrics/pkg/apis/metrics/v1beta1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.quantity import CPU, MEMORY, milli_value, whole_value
from podium.api.resource_requests import requests_of
from podium.api.times import format_time
from podium.api.use import Use
from podium.apirequests.parameters import Query, read_parameters
from podium.apirequests.request import Request
from podium.controllers.kubelets.pod_run import (
    CPU_USAGE,
    MEMORY_USAGE,
    PodUse,
    is_running,
    pod_uses,
    stated,
    uid_of,
)
from podium.server.backend import Backend
from podium.store.errors import StoreError
from podium.store.listing import ListOptions

METRICS_VERSION = "metrics.k8s.io/v1beta1"
"""The API version of the metrics."""

_WINDOW = "10s"


def uses_by_node(nodes: Iterable[Node], pods: Iterable[Pod]) -> dict[str, dict[str, PodUse]]:
    """Return the usage of the running pods by uid, by the name of their node; ``nodes`` are those that run them."""
    known = {node.metadata.name: node for node in nodes}
    running: dict[str, list[Pod]] = {}
    for pod in filter(is_running, pods):
        running.setdefault(pod.spec.node_name, []).append(pod)
    return {name: pod_uses(known.get(name), on_node) for name, on_node in running.items()}


def pod_metrics_list(pods: Iterable[Pod], uses: Mapping[str, Mapping[str, PodUse]], now: int) -> Raw:
    """Return the PodMetricsList of the running pods."""
    found = []
    for pod in pods:
        used = uses.get(pod.spec.node_name, {}).get(uid_of(pod))
        if used is not None:
            containers = [{"name": name, "usage": _usage(part)} for name, part in _containers(pod, used.use).items()]
            found.append({**_head("PodMetrics", pod, now), "containers": containers})
    return _list("PodMetrics", found)


def node_metrics_list(nodes: Iterable[Node], uses: Mapping[str, Mapping[str, PodUse]], now: int) -> Raw:
    """Return the NodeMetricsList of the nodes."""
    found = []
    for node in nodes:
        there = [used.use for used in uses.get(node.metadata.name, {}).values()]
        total = Use(sum(use.cpu_milli for use in there), sum(use.memory_bytes for use in there))
        found.append({**_head("NodeMetrics", node, now), "usage": _usage(total)})
    return _list("NodeMetrics", found)


def _containers(pod: Pod, use: Use) -> Mapping[str, Use]:
    """Return each container's share of the pod's usage."""
    annotations = pod.metadata.annotations
    requests = [requests_of(container.resources) for container in pod.spec.containers]
    cpu_requests = [milli_value(amounts.get(CPU, 0)) for amounts in requests]
    cpu = _parts(use.cpu_milli, cpu_requests, stated(annotations, CPU_USAGE) is not None)
    memory_requests = [whole_value(amounts.get(MEMORY, 0)) for amounts in requests]
    memory = _parts(use.memory_bytes, memory_requests, stated(annotations, MEMORY_USAGE) is not None)
    names = [container.name for container in pod.spec.containers]
    return {name: Use(*used) for name, *used in zip(names, cpu, memory, strict=True)}


def _parts(used: int, requested: Sequence[int], is_said: bool) -> list[int]:
    """Return each container's usage: proportional to its request; a usage stated by the pod goes to the first one."""
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


_Type = TypeVar("_Type", bound=Kubernetes)


class ResourceMetrics:
    """The resource metrics of a backend's nodes and pods."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def at(self, path: Sequence[str], query: Query) -> Raw | None:
        """Return the metrics at a path within the group, or None.

        Raises StoreError 404 for a node that does not exist and for a pod that does not run, and 400 for malformed
        selectors.
        """
        asked = read_parameters(query).options
        options = ListOptions(label_selector=asked.label_selector, field_selector=asked.field_selector)
        match path:
            case ["nodes"] | ["pods"]:
                kind, namespace, name = path[0], "", ""
            case ["nodes", name]:
                kind, namespace = "nodes", ""
            case ["namespaces", namespace, "pods"]:
                kind, name = "pods", ""
            case ["namespaces", namespace, "pods", name]:
                kind = "pods"
            case _:
                return None
        if name:
            options = ListOptions(field_selector=f"metadata.name={name}")
        # A pod's share of its node's cpu depends on all other pods there.
        uses = uses_by_node(self._all(Node, ListOptions()), self._all(Pod, ListOptions()))
        now = self._backend.now()
        if kind == "nodes":
            found = node_metrics_list(self._all(Node, options), uses, now)
        else:
            found = pod_metrics_list(self._all(Pod, options, namespace), uses, now)
        if not name:
            return found
        if found["items"]:
            only: Raw = found["items"][0]
            return only
        details = {"name": name, "group": "metrics.k8s.io", "kind": kind}
        full_name = f"{namespace}/{name}" if namespace else name
        raise StoreError(404, "NotFound", f'{kind}.metrics.k8s.io "{full_name}" not found', details)

    def _all(self, type_: type[_Type], options: ListOptions, namespace: str = "") -> Iterator[_Type]:
        """Yield the objects of a kind. Raises StoreError as the backend answers."""
        response = self._backend.answer(Request(verb="list", kind=type_.__name__, namespace=namespace, options=options))
        if response.error is not None:
            raise response.error
        for stored in response.page.items if response.page is not None else ():
            if isinstance(stored.object, type_):
                yield stored.object
