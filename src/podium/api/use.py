"""The resource usage of pods and nodes, and the health of a pod's containers.

The usage is from metrics.k8s.io (k8s.io/metrics/pkg/apis/metrics/v1beta1), the health from the pod's status (core/v1
ContainerStatus). Source: pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses), kuberuntime (doBackOff).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from podium.api.meta import Raw, object_at, objects_at, value_at
from podium.api.quantity import CPU, MEMORY, milli_value, whole_value
from podium.api.times import time_of


class Use(Struct, frozen=True):
    """The current usage of a pod or a node."""

    cpu_milli: int
    memory_bytes: int


def uses_of(raw: Raw, read: Callable[[Raw], Use | None]) -> dict[str, Use]:
    """Return the usage by key in a list of PodMetrics (`pod_use`) or NodeMetrics (`node_use`) that is readable."""
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


OUT_OF_MEMORY = "OOMKilled"
"""The reason of a container that was killed because it exceeded its memory limit."""

CRASH_LOOP = "CrashLoopBackOff"
"""The reason of a container that failed repeatedly and waits for its restart."""

_LISTS = ("containerStatuses", "initContainerStatuses")
_MOST_RESTARTS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PodHealth:
    """The aggregated health of a pod's containers.

    ``restarts`` is the number of restarts. ``out_of_memory_kills`` are the restarts of containers whose last
    termination was OOMKilled, at least one for each: a status has only the last termination. ``is_crash_looping``: some
    container waits for its restart after failures. ``failure_ns`` is the time of the last failure, None if there was
    none or its time is unknown.
    """

    restarts: int = 0
    out_of_memory_kills: int = 0
    is_crash_looping: bool = False
    failure_ns: int | None = None


WELL = PodHealth()
"""The health of pods without any reported problem."""


def pod_health(raw: Raw) -> PodHealth:
    """Return the health of a pod from its wire form; unreadable values are ignored."""
    status = raw.get("status")
    if not isinstance(status, dict):
        return WELL
    restarts, kills, loops = 0, 0, False
    failures: list[int] = []
    for container in (item for name in _LISTS for item in objects_at(status, name)):
        stated = container.get("restartCount")
        if not (stated or container.get("lastState")) and object_at(container, "state").keys() == {"running"}:
            continue
        count = max(0, min(stated, _MOST_RESTARTS)) if type(stated) is int else 0
        # The recorded terminations: the current and the last one.
        ends = [end for name in ("state", "lastState") if (end := object_at(container, name, "terminated"))]
        restarts += count
        loops |= value_at(container, "state", "waiting", "reason") == CRASH_LOOP
        if ends and ends[0].get("reason") == OUT_OF_MEMORY:
            kills += max(count, 1)
        times = (time_of(end.get("finishedAt")) for end in ends if end.get("exitCode") != 0)
        failures += [time for time in times if time is not None]
    if not (restarts or kills or loops or failures):
        return WELL
    return PodHealth(min(restarts, _MOST_RESTARTS), min(kills, _MOST_RESTARTS), loops, max(failures, default=None))
