"""What a pod counts for while its resources are resized in place.

Until the kubelet has carried a resize out, three amounts are about: what the spec wants, what the kubelet has allocated
and what the containers run with. The scheduler counts the greatest of them.

Source: component-helpers/resource/helpers.go (AggregateContainerRequests, PodRequests, determineEffectiveRequests).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from podium.api.pod import Container, ContainerStatus, Pod, PodSpec, Quantity, ResourceRequirements
from podium.api.quantity import milli_value
from podium.api.resource_requests import pod_level_requests, requests_of

RESIZE_PENDING = "PodResizePending"
INFEASIBLE = "Infeasible"


def effective_spec(pod: Pod) -> PodSpec:
    """The pod's spec with the requests that count; the spec itself for pods whose status tells of no resources.

    A request that counts is the greatest of spec, status and allocation, resource by resource. A resize that the
    kubelet found infeasible leaves the spec out of it. Init containers keep their spec unless they always restart.
    """
    spec, status = pod.spec, pod.status
    if status.resources is None and not status.container_statuses and not status.init_container_statuses:
        return spec
    reported = {
        container.name: container for container in (*status.container_statuses, *status.init_container_statuses)
    }
    if status.resources is None and all(container.resources is None for container in reported.values()):
        return spec
    is_infeasible = _is_infeasible(pod)
    containers = tuple(
        _effective(container, reported.get(container.name), is_infeasible) for container in spec.containers
    )
    init_containers = tuple(
        _effective(init_container, reported.get(init_container.name), is_infeasible)
        if init_container.restart_policy == "Always"
        else init_container
        for init_container in spec.init_containers
    )
    resources = _as_a_whole(pod, is_infeasible)
    if (containers, init_containers, resources) == (spec.containers, spec.init_containers, spec.resources):
        return spec
    return msgspec.structs.replace(spec, containers=containers, init_containers=init_containers, resources=resources)


def _is_infeasible(pod: Pod) -> bool:
    pending = pod.status.condition(RESIZE_PENDING)
    return pending is not None and pending.reason == INFEASIBLE


def _effective(container: Container, status: ContainerStatus | None, is_infeasible: bool) -> Container:
    """The container with the requests that count; its limits are left out, so that they stand in for nothing."""
    if status is None or status.resources is None:
        return container
    wanted = requests_of(container.resources)
    if wanted == status.resources.requests and status.allocated_resources in ({}, wanted):
        return container
    known = [status.resources.requests, status.allocated_resources]
    requests = _greatest(known if is_infeasible else [wanted, *known])
    if _milli(requests) == _milli(wanted):
        return container
    return msgspec.structs.replace(container, resources=ResourceRequirements(requests=requests))


def _as_a_whole(pod: Pod, is_infeasible: bool) -> ResourceRequirements | None:
    """What counts of the requests that the pod makes as a whole: nothing where status and allocation name none."""
    wanted: dict[str, Quantity] = {name: f"{amount}m" for name, amount in pod_level_requests(pod.spec).items()}
    if not wanted or pod.status.resources is None:
        return pod.spec.resources
    known = [pod.status.resources.requests, pod.status.allocated_resources]
    found = _greatest(known if is_infeasible else [wanted, *known])
    counted: dict[str, Quantity] = {name: found.get(name, 0) for name in wanted}
    return pod.spec.resources if _milli(counted) == _milli(wanted) else ResourceRequirements(requests=counted)


def _greatest(lists: Iterable[Mapping[str, Quantity]]) -> dict[str, Quantity]:
    """The greatest amount of each resource that any of the lists names."""
    found: dict[str, Quantity] = {}
    for amounts in lists:
        for name, amount in amounts.items():
            if name not in found or milli_value(amount) > milli_value(found[name]):
                found[name] = amount
    return found


def _milli(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: milli_value(amount) for name, amount in amounts.items()}
