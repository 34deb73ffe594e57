"""The resource requests of pods and the allocatable resources of nodes, computed as in Kubernetes.

Amounts are integers in one unit per resource: cpu in milli, all others in units (bytes, devices). The rules are those
of component-helpers' resource.PodRequests, after the API server's defaults (pkg/apis/core/v1/defaults.go), so that a
manifest that is not yet admitted counts as it will. From the requests follows the QoS class.

Until the kubelet has completed an in-place resize, there are three amounts: desired (spec), allocated by the kubelet,
and actual in the containers. The scheduler counts the maximum (AggregateContainerRequests, PodRequests,
determineEffectiveRequests).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Literal, TypeVar

import msgspec

from podium.api.node import NodeStatus
from podium.api.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus, Quantity, ResourceRequirements
from podium.api.quantity import CPU, MEMORY, is_pod_level, milli_value

Computed = TypeVar("Computed")

MAX_UNITS = 2**53
"""The maximum amount of any resource; larger amounts are clamped.

It exceeds any real machine, is exact in a float64, and the sum over many pods on a node fits int64."""

SUMMABLE_PODS = 1_000
"""The number of pods whose summed requests fit int64."""

DEFAULT_CPU_MILLI = 100
"""The amount that `nonzero_requests` counts for a container without a cpu request."""

DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
"""The amount that `nonzero_requests` counts for a container without a memory request."""

# The number of cached pod classes; readings that differ elsewhere share their containers.
_KEPT = 1_024
# Specs and statuses of which the former has the effective requests, and whether pods were resized as a whole.
_AS_WRITTEN: dict[int, tuple[PodSpec, PodStatus, bool]] = {}

_NONZERO_MILLI = {CPU: DEFAULT_CPU_MILLI, MEMORY: DEFAULT_MEMORY_BYTES * 1_000}


def computed_once(compute: Callable[[PodSpec], Computed]) -> Callable[[PodSpec], Computed]:
    """Cache a function of the requests of a spec: it is computed once for all specs that share them."""
    known: dict[int, tuple[PodSpec, Computed]] = {}

    @wraps(compute)
    def compute_once(spec: PodSpec) -> Computed:
        # Each entry keeps its containers alive, so their identity stays unique.
        found = known.get(id(spec.containers))
        if found is not None and requests_alike(spec, found[0]):
            return found[1]
        computed = compute(spec)
        if len(known) >= _KEPT:
            # The oldest alone: the cost of a call must not depend on how full the cache happens to be.
            del known[next(iter(known))]
        known[id(spec.containers)] = spec, computed
        return computed

    return compute_once


@computed_once
def pod_requests(spec: PodSpec) -> Mapping[str, int]:
    """Return the requests of the pod including overhead; unmentioned resources are absent.

    Containers and sidecars (init containers that always restart) add up. Each init container needs its own amount and
    that of the sidecars before it; the maximum of these counts if it is larger. Pod-level requests replace the sum for
    cpu, memory and huge pages.
    """
    return _canonical(_pod_milli(spec, {}))


def requests_alike(spec: PodSpec, other: PodSpec) -> bool:
    """Return whether two specs share everything that determines their requests."""
    return (
        spec.containers is other.containers
        and spec.init_containers is other.init_containers
        and spec.overhead is other.overhead
        and spec.resources is other.resources
    )


@computed_once
def nonzero_requests(spec: PodSpec) -> tuple[int, int]:
    """Return (cpu in milli, memory in bytes) for scoring, with nonzero amounts for every container.

    A container without a request counts the defaults above. With pod-level requests, the defaults count only for
    resources that neither the pod nor any container names, as in the scheduler's NodeInfo
    (pkg/scheduler/framework/types.go, CalculateResource).
    """
    defaults = _NONZERO_MILLI
    if pod_level_requests(spec):
        named = _pod_milli(spec, {})
        defaults = {name: amount for name, amount in defaults.items() if name not in named}
    amounts = _canonical(_pod_milli(spec, defaults))
    return amounts.get(CPU, 0), amounts.get(MEMORY, 0)


@computed_once
def largest_nonzero_requests(spec: PodSpec) -> tuple[int, int]:
    """Return the same as kube-scheduler 1.31 counts it: sidecars do not add up with the containers.

    Each init container counts with the sidecars before it, and a sidecar too; what none of these requests has the
    default. The maximum of these or the sum of the containers counts (calculateResource).
    """
    total = container_requests(spec, _NONZERO_MILLI, sums_sidecars=False)
    _add(total, in_milli(spec.overhead))
    amounts = _canonical(total)
    return amounts.get(CPU, 0), amounts.get(MEMORY, 0)


def pod_level_requests(spec: PodSpec) -> dict[str, int]:
    """Return the pod-level requests, in milli of each resource; empty if there are none.

    With pod-level limits, unset requests default to what the containers need, or else to the limit
    (pkg/apis/core/v1/defaults.go, defaultPodRequests).
    """
    resources = spec.resources
    if resources is None:
        return {}
    requests = in_milli(resources.requests)
    if resources.limits:
        for name, amount in container_requests(spec).items():
            if name in (CPU, MEMORY):
                requests.setdefault(name, amount)
        for name, limit in resources.limits.items():
            requests.setdefault(name, milli_value(limit))
    return {name: amount for name, amount in requests.items() if is_pod_level(name)}


def requests_of(resources: ResourceRequirements) -> Mapping[str, Quantity]:
    """Return a container's requests; unset ones default to its limits (SetDefaults_Pod)."""
    return {**resources.limits, **resources.requests} if resources.limits else resources.requests


def node_allocatable(status: NodeStatus) -> dict[str, int]:
    """Return the node's allocatable resources; its capacity if `allocatable` is unset (SetDefaults_NodeStatus)."""
    return _canonical(in_milli(status.allocatable or status.capacity))


def _pod_milli(spec: PodSpec, defaults: Mapping[str, int]) -> dict[str, int]:
    """Return the pod's requests in milli of every resource, with `defaults` for requests that a container omits.

    Milli throughout, because the API server rounds each amount up to milli, and the scheduler only the sum.
    """
    total = container_requests(spec, defaults)
    total.update(pod_level_requests(spec))
    _add(total, in_milli(spec.overhead))
    return total


def container_requests(
    spec: PodSpec, defaults: Mapping[str, int] = {}, *, sums_sidecars: bool = True
) -> dict[str, int]:
    """Return the total of the containers, in milli of each resource (AggregateContainerRequests).

    Unless it ``sums_sidecars``, these only count beside init containers, and the defaults for both of them together.
    """
    total: dict[str, int] = {}
    for container in spec.containers:
        _add(total, _container_milli(container, defaults))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        amounts = _container_milli(container, defaults if sums_sidecars else {})
        if container.restart_policy == "Always":
            if sums_sidecars:
                _add(total, amounts)
            _add(sidecars, amounts)
            amounts = sidecars
        else:
            _add(amounts, sidecars)
        _raise_to(peak, amounts if sums_sidecars else {**defaults, **amounts})
    _raise_to(total, peak)
    return total


def _container_milli(container: Container, defaults: Mapping[str, int]) -> dict[str, int]:
    return {**defaults, **in_milli(requests_of(container.resources))}


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


QOSClass = Literal["Guaranteed", "Burstable", "BestEffort"]


@computed_once
def qos_class(spec: PodSpec) -> QOSClass:
    """Return the class of a pod, by cpu and memory alone (ComputePodQOS in pkg/apis/core/v1/helper/qos).

    Guaranteed: every container, including init containers, has nonzero requests equal to its limits. BestEffort: no
    container has requests or limits. Burstable: all others. Pod-level resources, if set, decide alone.
    """
    if spec.resources is not None:
        return _class_of(pod_level_requests(spec), in_milli(spec.resources.limits))
    all_resources = [container.resources for container in (*spec.init_containers, *spec.containers)]
    classes = {_class_of(in_milli(requests_of(resources)), in_milli(resources.limits)) for resources in all_resources}
    return "Burstable" if len(classes) > 1 else classes.pop() if classes else "BestEffort"


def _class_of(requests: Mapping[str, int], limits: Mapping[str, int]) -> QOSClass:
    """Return the class for one set of requests and limits, in milli."""
    wanted, most = ([amounts.get(name, 0) for name in (CPU, MEMORY)] for amounts in (requests, limits))
    if wanted != most or (any(most) and not all(most)):
        return "Burstable"
    return "Guaranteed" if any(most) else "BestEffort"


def in_milli(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    """Return amounts in milli-units."""
    return {name: milli_value(amount) for name, amount in amounts.items()}


RESIZE_PENDING = "PodResizePending"
DEFERRED = "Deferred"
INFEASIBLE = "Infeasible"


def effective_spec(pod: Pod, *, resizes_pods: bool = True, as_allocated: bool = False) -> PodSpec:
    """Return the pod's spec with the effective requests; the spec itself if the status has no resources.

    An effective request is the maximum of spec, status and allocation, for each resource. If the kubelet found the
    resize infeasible, or ``as_allocated``, the spec does not count. Init containers keep their spec unless they always
    restart. Pod-level resources keep theirs unless ``resizes_pods``.
    """
    spec, status = pod.spec, pod.status
    if status.resources is None and not reports_any(status.container_statuses, status.init_container_statuses):
        return spec
    known = _AS_WRITTEN.get(id(spec.containers))
    is_known = known is not None and known[2] is resizes_pods and requests_alike(spec, known[0])
    if not as_allocated and known is not None and is_known and _reports_alike(status, known[1]):
        return spec
    statuses = (*status.container_statuses, *status.init_container_statuses)
    reported = {container.name: container for container in statuses}
    is_infeasible = as_allocated or _is_pending(pod, INFEASIBLE)
    containers = tuple(
        _effective(container, reported.get(container.name), is_infeasible) for container in spec.containers
    )
    init_containers = tuple(
        _effective(init_container, reported.get(init_container.name), is_infeasible)
        if init_container.restart_policy == "Always"
        else init_container
        for init_container in spec.init_containers
    )
    resources = _as_a_whole(pod, is_infeasible) if resizes_pods else spec.resources
    if (containers, init_containers, resources) == (spec.containers, spec.init_containers, spec.resources):
        if len(_AS_WRITTEN) >= _KEPT:
            _AS_WRITTEN.clear()
        _AS_WRITTEN[id(spec.containers)] = spec, status, resizes_pods
        return spec
    return msgspec.structs.replace(spec, containers=containers, init_containers=init_containers, resources=resources)


def _reports_alike(status: PodStatus, other: PodStatus) -> bool:
    """Return whether two statuses share everything that determines the effective requests."""
    return (
        status.container_statuses is other.container_statuses
        and status.init_container_statuses is other.init_container_statuses
        and status.conditions is other.conditions
        and status.resources is other.resources
        and status.allocated_resources is other.allocated_resources
    )


def reports_any(*statuses: tuple[ContainerStatus, ...]) -> bool:
    """Return whether any container status has resources; most pods have none, and are asked often."""
    for listed in statuses:
        for container in listed:
            if container.resources is not None:
                return True
    return False


def is_resize_deferred(pod: Pod) -> bool:
    """Return whether the kubelet has deferred the pod's resize until there is room."""
    return _is_pending(pod, DEFERRED)


def _is_pending(pod: Pod, reason: str) -> bool:
    pending = pod.status.condition(RESIZE_PENDING)
    return pending is not None and pending.reason == reason


def _effective(container: Container, status: ContainerStatus | None, is_infeasible: bool) -> Container:
    """Return the container with the effective requests; limits are omitted, so that they do not become requests."""
    if status is None or status.resources is None:
        return container
    wanted = requests_of(container.resources)
    if wanted == status.resources.requests and status.allocated_resources in ({}, wanted):
        return container
    known = [status.resources.requests, status.allocated_resources]
    requests = _greatest(known if is_infeasible else [wanted, *known])
    if in_milli(requests) == in_milli(wanted):
        return container
    return msgspec.structs.replace(container, resources=ResourceRequirements(requests=requests))


def _as_a_whole(pod: Pod, is_infeasible: bool) -> ResourceRequirements | None:
    """Return the pod-level resources with the effective requests.

    If the resize is infeasible, a resource that neither status nor allocation names counts as 0.
    """
    wanted: dict[str, Quantity] = {name: f"{amount}m" for name, amount in pod_level_requests(pod.spec).items()}
    if not wanted or pod.status.resources is None:
        return pod.spec.resources
    known = [pod.status.resources.requests, pod.status.allocated_resources]
    found = _greatest(known if is_infeasible else [wanted, *known])
    counted: dict[str, Quantity] = {name: found.get(name, 0) for name in wanted}
    return pod.spec.resources if in_milli(counted) == in_milli(wanted) else ResourceRequirements(requests=counted)


def _greatest(lists: Iterable[Mapping[str, Quantity]]) -> dict[str, Quantity]:
    """Return the maximum amount of each resource in any of the lists."""
    found: dict[str, Quantity] = {}
    for amounts in lists:
        for name, amount in amounts.items():
            if name not in found or milli_value(amount) > milli_value(found[name]):
                found[name] = amount
    return found
