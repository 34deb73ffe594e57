"""The resource usage of pods and nodes from metrics.k8s.io (k8s.io/metrics/pkg/apis/metrics/v1beta1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from podium.api.meta import Raw
from podium.api.quantity import CPU, MEMORY, milli_value, whole_value


@dataclass(frozen=True, slots=True)
class Use:
    """The current usage of a pod or a node."""

    cpu_milli: int
    memory_bytes: int


def uses_of_pods(raw: Raw) -> dict[str, Use]:
    """Return the usage in a PodMetricsList by pod key, without unreadable items."""
    return _uses(raw, pod_use)


def uses_of_nodes(raw: Raw) -> dict[str, Use]:
    """Return the usage in a NodeMetricsList by node name, without unreadable items."""
    return _uses(raw, node_use)


def _uses(raw: Raw, read: Callable[[Raw], Use | None]) -> dict[str, Use]:
    found: dict[str, Use] = {}
    items = raw.get("items")
    for item in items if isinstance(items, list) else ():
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if isinstance(metadata, dict):
            use = read(item)
            name, namespace = metadata.get("name"), metadata.get("namespace")
            if use is not None and isinstance(name, str):
                found[f"{namespace}/{name}" if namespace else name] = use
    return found


def pod_use(raw: Raw) -> Use | None:
    """Return the total usage of a pod's containers from its PodMetrics; None if unreadable."""
    listed = raw.get("containers")
    if not isinstance(listed, list):
        return None
    return _sum(item.get("usage") if isinstance(item, dict) else None for item in listed)


def node_use(raw: Raw) -> Use | None:
    """Return the usage of a node from its NodeMetrics; None if unreadable."""
    return _sum([raw.get("usage")])


def _sum(usages: Iterable[Any]) -> Use | None:
    cpu_milli = memory_bytes = 0
    for usage in usages:
        if not isinstance(usage, dict):
            return None
        try:
            cpu, memory = milli_value(usage.get(CPU, 0)), whole_value(usage.get(MEMORY, 0))
        except (TypeError, ValueError):
            return None
        if cpu < 0 or memory < 0:
            return None
        cpu_milli += cpu
        memory_bytes += memory
    return Use(cpu_milli, memory_bytes)
