"""Extended resources that stand for a device class: the claim that is made for them.

Where a node offers the resource itself, by a device plugin, its devices are counted by NodeResourcesFit. Where it does
not, and a class stands for it, the pod gets devices of the class, by a claim that the scheduler makes.

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from podium.api.devices import DeviceClass
from podium.api.meta import ObjectMeta, OwnerReference, Raw
from podium.api.pod import Container
from podium.api.quantity import whole_value
from podium.api.resource_claims import (
    EXTENDED_RESOURCE_CLAIM,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from podium.api.resource_requests import requests_of
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord

IN_MEMORY = "<extended-resources>"
"""The name of the claim until it is written: none that an object could have."""


@dataclass(frozen=True, slots=True)
class RequestMapping:
    """Which request of the claim serves a container's resource (core/v1 ContainerExtendedResourceRequest)."""

    container_name: str
    resource_name: str
    request_name: str

    @property
    def raw(self) -> Raw:
        """The mapping as it stands in the pod's status."""
        return {
            "containerName": self.container_name,
            "resourceName": self.resource_name,
            "requestName": self.request_name,
        }


@dataclass(frozen=True, slots=True)
class ExtendedClaim:
    """The claim for the extended resources that one kind of node does not offer itself."""

    claim: ResourceClaim
    mappings: tuple[RequestMapping, ...]


def backed_resources(pod: PodRecord, cluster: Cluster) -> tuple[str, ...]:
    """The pod's extended resources for which a device class stands, by name."""
    if not cluster.devices.backed:
        return ()
    names = cluster.nodes.resources
    wanted = (names[resource] for resource, amount in pod.pod_class.requests.items() if amount)
    return tuple(sorted(name for name in wanted if name in cluster.devices.backed))


def empty_claim(pod: PodRecord) -> ResourceClaim:
    """The claim before anything is asked for. It goes by the pod's uid, since it has none yet."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    return ResourceClaim(
        api_version="resource.k8s.io/v1",
        kind="ResourceClaim",
        metadata=ObjectMeta(
            name=IN_MEMORY,
            namespace=pod.namespace,
            uid=pod.uid,
            generate_name=f"{pod.name}-extended-resources-",
            owner_references=(owner,),
            annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        ),
    )


def extended_claim(pod: PodRecord, resources: Iterable[str], backed: Mapping[str, DeviceClass]) -> ExtendedClaim:
    """The claim for devices instead of these resources.

    Containers that run together each have a request for each resource. Init containers that end before may use the
    devices of those that come after them; what is lacking for the one that wants most is asked for once.
    """
    requests: list[DeviceRequest] = []
    mappings: list[RequestMapping] = []
    for resource in resources:
        class_name = backed[resource].metadata.name
        for_one, mapped = _of_resource(pod, resource, class_name)
        requests += for_one
        mappings += mapped
    requests.sort(key=lambda device_request: device_request.name)
    empty = empty_claim(pod)
    claim = ResourceClaim(
        api_version=empty.api_version,
        kind=empty.kind,
        metadata=empty.metadata,
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests))),
    )
    return ExtendedClaim(claim, tuple(mappings))


def _of_resource(pod: PodRecord, resource: str, class_name: str) -> tuple[list[DeviceRequest], list[RequestMapping]]:
    before = pod.spec.init_containers
    containers = (*before, *pod.spec.containers)
    long: list[_Part | None] = []
    for number, container in enumerate(containers):
        ends = number < len(before) and container.restart_policy != "Always"
        long.append(None if ends else _part(number, container, resource, []))
    short: list[_Part] = []
    for number, container in enumerate(before):
        if container.restart_policy != "Always":
            later = [part for part in long[number:] if part is not None]
            found = _part(number, container, resource, later)
            if found is not None:
                short.append(found)
    most = max((part for part in short if part.count), key=lambda part: part.count, default=None)
    own = {part.name for part in short if part.count}
    mappings = [
        RequestMapping(part.container, resource, most.name if most is not None and name in own else name)
        for part in [*(long_part for long_part in long if long_part is not None), *short]
        for name in part.serving
    ]
    asked = [part for part in (most, *long) if part is not None and part.count]
    requests = [
        DeviceRequest(
            name=part.name,
            exactly=ExactDeviceRequest(device_class_name=class_name, allocation_mode="ExactCount", count=part.count),
        )
        for part in asked
    ]
    return requests, mappings


@dataclass(frozen=True, slots=True)
class _Part:
    """What one container needs of a resource: ``count`` devices in a request of its own; which requests serve it."""

    name: str
    container: str
    count: int
    serving: tuple[str, ...]


def _part(number: int, container: Container, resource: str, later: list[_Part]) -> _Part | None:
    """None where the container wants none of the resource. It may use the requests of ``later`` ones first."""
    requests = requests_of(container.resources)
    wanted = whole_value(requests[resource]) if resource in requests else 0
    if not wanted:
        return None
    name = f"container-{number}-request-{sorted(requests).index(resource)}"
    serving: list[str] = []
    for part in later:
        if part.count:
            serving.append(part.name)
            wanted -= part.count
            if wanted <= 0:
                return _Part(name, container.name, 0, tuple(serving))
    return _Part(name, container.name, wanted, (*serving, name))
