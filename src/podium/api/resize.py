"""The effective requests of a pod during an in-place resize.

Until the kubelet has completed a resize, there are three amounts: desired (spec), allocated by the kubelet, and actual
in the containers. The scheduler counts the maximum.

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


def effective_spec(pod: Pod, *, resizes_pods: bool = True) -> PodSpec:
    """Return the pod's spec with the effective requests; the spec itself if the status has no resources.

    An effective request is the maximum of spec, status and allocation, for each resource. If the kubelet found the
    resize infeasible, the spec does not count. Init containers keep their spec unless they always restart. Pod-level
    resources keep theirs unless ``resizes_pods``.
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
    resources = _as_a_whole(pod, is_infeasible) if resizes_pods else spec.resources
    if (containers, init_containers, resources) == (spec.containers, spec.init_containers, spec.resources):
        return spec
    return msgspec.structs.replace(spec, containers=containers, init_containers=init_containers, resources=resources)


def _is_infeasible(pod: Pod) -> bool:
    pending = pod.status.condition(RESIZE_PENDING)
    return pending is not None and pending.reason == INFEASIBLE


def _effective(container: Container, status: ContainerStatus | None, is_infeasible: bool) -> Container:
    """Return the container with the effective requests; limits are omitted, so that they do not become requests."""
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
    """Return the pod-level resources with the effective requests.

    If the resize is infeasible, a resource that neither status nor allocation names counts as 0.
    """
    wanted: dict[str, Quantity] = {name: f"{amount}m" for name, amount in pod_level_requests(pod.spec).items()}
    if not wanted or pod.status.resources is None:
        return pod.spec.resources
    known = [pod.status.resources.requests, pod.status.allocated_resources]
    found = _greatest(known if is_infeasible else [wanted, *known])
    counted: dict[str, Quantity] = {name: found.get(name, 0) for name in wanted}
    return pod.spec.resources if _milli(counted) == _milli(wanted) else ResourceRequirements(requests=counted)


def _greatest(lists: Iterable[Mapping[str, Quantity]]) -> dict[str, Quantity]:
    """Return the maximum amount of each resource in any of the lists."""
    found: dict[str, Quantity] = {}
    for amounts in lists:
        for name, amount in amounts.items():
            if name not in found or milli_value(amount) > milli_value(found[name]):
                found[name] = amount
    return found


def _milli(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: milli_value(amount) for name, amount in amounts.items()}
