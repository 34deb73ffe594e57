"""What a pod asks for and what a node offers, counted as Kubernetes counts.

Amounts are whole numbers in one unit per resource: cpu in milli, everything else in units (bytes, devices).
The rules are those of component-helpers' resource.PodRequests, after the defaults that the API server fills
in (pkg/apis/core/v1/defaults.go), so that a manifest not yet admitted counts as it will.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.node import NodeStatus
from podium.api.pod import Container, PodSpec, Quantity, ResourceRequirements
from podium.api.quantity import milli_value
from podium.api.resources import CPU, MEMORY, is_pod_level

MAX_UNITS = 2**53
"""The largest amount counted of any resource; larger ones count as this much.

It is beyond any real machine, exact in a float64, and the sum of many pods on a node stays within int64.
"""

SUMMABLE_PODS = 1_000
"""The sum of what so many pods request stays within int64."""

DEFAULT_CPU_MILLI = 100
"""Counted by `nonzero_requests` for a container that names no cpu."""

DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
"""Counted by `nonzero_requests` for a container that names no memory."""

# Readings share their containers, whatever else of them is another. So many sorts of pods are kept.
_KEPT = 1_024
_KNOWN: dict[int, tuple[PodSpec, Mapping[str, int]]] = {}

_NONZERO_MILLI = {CPU: DEFAULT_CPU_MILLI, MEMORY: DEFAULT_MEMORY_BYTES * 1_000}


def pod_requests(spec: PodSpec) -> Mapping[str, int]:
    """The resources to set aside for the pod, overhead included; a resource that nothing names is absent.

    Containers and sidecars (init containers that always restart) add up. Each init container needs its own
    amount and that of the sidecars before it, and the largest such need counts where it is more. Pod-level
    requests replace the sum for cpu, memory and huge pages.
    """
    # Found by identity, and told by it: what is kept cannot be the identity of anything else.
    found = _KNOWN.get(id(spec.containers))
    if found is not None and requests_alike(spec, found[0]):
        return found[1]
    amounts = _canonical(_pod_milli(spec, {}))
    if len(_KNOWN) >= _KEPT:
        _KNOWN.clear()
    _KNOWN[id(spec.containers)] = spec, amounts
    return amounts


def requests_alike(spec: PodSpec, other: PodSpec) -> bool:
    """Whether two specs share all that their requests follow from."""
    return (
        spec.containers is other.containers
        and spec.init_containers is other.init_containers
        and spec.overhead is other.overhead
        and spec.resources is other.resources
    )


def nonzero_requests(spec: PodSpec) -> tuple[int, int]:
    """(cpu in milli, memory in bytes) as scoring counts them, so that no container counts as free of charge.

    A container that names none counts the defaults above. With pod-level requests, the defaults count only
    for what neither the pod nor any container names, as the scheduler's NodeInfo counts
    (pkg/scheduler/framework/types.go, CalculateResource).
    """
    defaults = _NONZERO_MILLI
    if pod_level_requests(spec):
        named = _pod_milli(spec, {})
        defaults = {name: amount for name, amount in defaults.items() if name not in named}
    amounts = _canonical(_pod_milli(spec, defaults))
    return amounts.get(CPU, 0), amounts.get(MEMORY, 0)


def pod_level_requests(spec: PodSpec) -> dict[str, int]:
    """What the pod requests as a whole, in milli of each resource; empty when it requests nothing as a whole.

    Where pod-level limits are given, requests left open become what the containers need, or else the limit
    (pkg/apis/core/v1/defaults.go, defaultPodRequests).
    """
    resources = spec.resources
    if resources is None:
        return {}
    requests = {name: milli_value(amount) for name, amount in resources.requests.items()}
    if resources.limits:
        for name, amount in _containers_milli(spec, {}).items():
            if name in (CPU, MEMORY):
                requests.setdefault(name, amount)
        for name, limit in resources.limits.items():
            requests.setdefault(name, milli_value(limit))
    return {name: amount for name, amount in requests.items() if is_pod_level(name)}


def container_requests(spec: PodSpec) -> dict[str, int]:
    """What the containers need together, in milli of each resource (AggregateContainerRequests)."""
    return _containers_milli(spec, {})


def requests_of(resources: ResourceRequirements) -> Mapping[str, Quantity]:
    """A container's requests, with limits standing in for requests left open (SetDefaults_Pod)."""
    return {**resources.limits, **resources.requests} if resources.limits else resources.requests


def node_allocatable(status: NodeStatus) -> dict[str, int]:
    """What the node offers to pods; its capacity where no `allocatable` is given (SetDefaults_NodeStatus)."""
    amounts = status.allocatable or status.capacity
    return _canonical({name: milli_value(amount) for name, amount in amounts.items()})


def _pod_milli(spec: PodSpec, defaults: Mapping[str, int]) -> dict[str, int]:
    """The pod's requests in milli of every resource, with `defaults` for what a container leaves open.

    Milli throughout because the API server rounds each amount up to milli, and the scheduler only the sum.
    """
    total = _containers_milli(spec, defaults)
    total.update(pod_level_requests(spec))
    _add(total, {name: milli_value(amount) for name, amount in spec.overhead.items()})
    return total


def _containers_milli(spec: PodSpec, defaults: Mapping[str, int]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in spec.containers:
        _add(total, _container_milli(container, defaults))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        amounts = _container_milli(container, defaults)
        if container.restart_policy == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = sidecars
        else:
            _add(amounts, sidecars)
        _raise_to(peak, amounts)
    _raise_to(total, peak)
    return total


def _container_milli(container: Container, defaults: Mapping[str, int]) -> dict[str, int]:
    amounts = dict(defaults)
    amounts.update({name: milli_value(amount) for name, amount in requests_of(container.resources).items()})
    return amounts


def _add(total: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = max(total.get(name, 0), amount)


def _canonical(milli: Mapping[str, int]) -> dict[str, int]:
    return {
        name: min(amount if name == CPU else -(-amount // 1_000), MAX_UNITS) for name, amount in sorted(milli.items())
    }
