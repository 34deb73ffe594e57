"""The resource metrics of metrics.k8s.io, for `kubectl top`.

A simulated container uses what it requests. A usage stated by the pod (`podium.dev/cpu-usage`,
`podium.dev/memory-usage`) is attributed to its first container. The total cpu usage of a node is limited to its
capacity. Source: k8s.io/metrics/pkg/apis/metrics/v1beta1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from podium.controllers.kubelets import pod_run
from podium.server.backend import Backend
from podium.store.errors import StoreError
from podium.store.listing import ListOptions

METRICS_VERSION = "metrics.k8s.io/v1beta1"
"""The API version of the metrics."""


_Type = TypeVar("_Type", bound=Kubernetes)


def _containers(pod: Pod, use: Use) -> list[Raw]:
    """Return the containers, each with its share of the pod's usage."""
    annotations, containers = pod.metadata.annotations, pod.spec.containers
    requests = [requests_of(container.resources) for container in containers]
    cpu_requests = [milli_value(amounts.get(CPU, 0)) for amounts in requests]
    cpu = _parts(use.cpu_milli, cpu_requests, pod_run.stated(annotations, pod_run.CPU_USAGE) is not None)
    memory_requests = [whole_value(amounts.get(MEMORY, 0)) for amounts in requests]
    memory = _parts(use.memory_bytes, memory_requests, pod_run.stated(annotations, pod_run.MEMORY_USAGE) is not None)
    return [{"name": of.name, "usage": _usage(*used)} for of, *used in zip(containers, cpu, memory, strict=True)]


def _parts(used: int, requested: Sequence[int], is_said: bool) -> list[int]:
    """Return each container's usage: proportional to its request; a usage stated by the pod goes to the first one."""
    total = sum(requested)
    if is_said or not total:
        return [used, *(0 for _ in requested[1:])]
    parts = [used * amount // total for amount in requested]
    parts[0] += used - sum(parts)
    return parts


def _usage(cpu_milli: int, memory_bytes: int) -> Raw:
    return {"cpu": f"{cpu_milli}m", "memory": f"{memory_bytes // 1_024}Ki"}


def _list(kind: str, found: Iterable[tuple[Kubernetes, Raw]], now: int) -> Raw:
    """Return a list of the metrics of objects, given with their usage."""
    items, time = [], format_time(now)
    for object_, usage in found:
        metadata: Raw = {"name": object_.metadata.name, "creationTimestamp": time}
        if object_.metadata.namespace:
            metadata["namespace"] = object_.metadata.namespace
        if object_.metadata.labels:
            metadata["labels"] = object_.metadata.labels
        head = {"kind": kind, "apiVersion": METRICS_VERSION, "metadata": metadata}
        items.append({**head, "timestamp": time, "window": "10s", **usage})
    return {"kind": f"{kind}List", "apiVersion": METRICS_VERSION, "metadata": {}, "items": items}


def resource_metrics(backend: Backend, path: Sequence[str], query: Query) -> Raw | None:
    """Return the metrics of a backend's nodes or pods at a path within the group, or None.

    Raises StoreError 404 for a node that does not exist and for a pod that does not run, and 400 for malformed
    selectors.
    """
    requested = read_parameters(query).options
    namespace = path[1] if path[0] == "namespaces" and path[2:3] == ["pods"] else ""
    kind, name, *rest = (*(path[2:] if namespace else path), "")
    if kind not in ("nodes", "pods") or rest not in ([], [""]) or (kind == "pods" and name and not namespace):
        return None
    options = ListOptions(label_selector=requested.label_selector, field_selector=requested.field_selector)
    if name:
        options = ListOptions(field_selector=f"metadata.name={name}")
    # A pod's share of its node's cpu depends on all other pods there.
    running: dict[str, list[Pod]] = {}
    for pod in filter(pod_run.is_running, _all(backend, Pod, ListOptions())):
        running.setdefault(pod.spec.node_name, []).append(pod)
    nodes = {node.metadata.name: node for node in _all(backend, Node, ListOptions())}
    uses = {on: pod_run.pod_uses(nodes.get(on), pods) for on, pods in running.items()}
    if kind == "nodes":
        shown: list[tuple[Kubernetes, Raw]] = []
        for node in _all(backend, Node, options):
            there = [used.use for used in uses.get(node.metadata.name, {}).values()]
            usage = _usage(sum(use.cpu_milli for use in there), sum(use.memory_bytes for use in there))
            shown.append((node, {"usage": usage}))
        found = _list("NodeMetrics", shown, backend.now())
    else:
        pods = _all(backend, Pod, options, namespace)
        used = [(pod, uses.get(pod.spec.node_name, {}).get(pod_run.uid_of(pod))) for pod in pods]
        shown = [(pod, {"containers": _containers(pod, its.use)}) for pod, its in used if its is not None]
        found = _list("PodMetrics", shown, backend.now())
    if not name:
        return found
    if found["items"]:
        only: Raw = found["items"][0]
        return only
    details = {"name": name, "group": "metrics.k8s.io", "kind": kind}
    full_name = f"{namespace}/{name}" if namespace else name
    raise StoreError(404, "NotFound", f'{kind}.metrics.k8s.io "{full_name}" not found', details)


def _all(backend: Backend, type_: type[_Type], options: ListOptions, namespace: str = "") -> Iterator[_Type]:
    """Yield the objects of a kind. Raises StoreError as the backend answers."""
    response = backend.answer(Request(verb="list", kind=type_.__name__, namespace=namespace, options=options))
    if response.error is not None:
        raise response.error
    for stored in response.page.items if response.page is not None else ():
        if isinstance(stored.object, type_):
            yield stored.object
