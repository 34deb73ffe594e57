"""Claims for devices (resource.k8s.io/v1 ResourceClaim, ResourceClaimTemplate)."""

from __future__ import annotations

from typing import Literal

import msgspec

from podium.api.devices import DeviceSelector
from podium.api.meta import Int64, Kubernetes, Narrow, ObjectMeta, Raw
from podium.api.pod import ResourceList
from podium.api.selection import NodeSelector

DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
"""The finalizer of claims that are allocated."""

EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of claims that a scheduler made for a pod's extended resources."""

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of claims made from a template: the name that the pod has for them."""

DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Before a class's name, the extended resource that stands for it whatever the class says."""

MOST_RESULTS = 32
"""How many devices a claim may get (AllocationResultsMaxSize)."""

MOST_ALTERNATIVES = 8
"""How many alternatives a request may list (FirstAvailableDeviceRequestMaxSize)."""


class DeviceToleration(Narrow, frozen=True, kw_only=True):
    """A taint that is accepted; an empty key with Exists accepts all, an empty effect every effect."""

    key: str = ""
    operator: Literal["", "Exists", "Equal"] = ""
    value: str = ""
    effect: Literal["", "None", "NoSchedule", "NoExecute"] = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Narrow, frozen=True, kw_only=True):
    """How much of a device's capacity is wanted."""

    requests: ResourceList = {}


class ExactDeviceRequest(Narrow, frozen=True, kw_only=True):
    """Devices of one class; the mode is ExactCount or All."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: Int64 = 1
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ExactDeviceRequest, frozen=True, kw_only=True):
    """One of several alternatives."""

    name: str


class DeviceRequest(ExactDeviceRequest, frozen=True, kw_only=True):
    """Devices, or the first of several alternatives that is to be had.

    What v1beta1 has in the request itself stands in `exactly` since v1beta2.
    """

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()

    @property
    def exact(self) -> ExactDeviceRequest | None:
        """What is wanted where there are no alternatives, in whatever version it was written."""
        if self.exactly is not None:
            return self.exactly
        return self if self.device_class_name else None


class DeviceConstraint(Narrow, frozen=True, kw_only=True):
    """What the devices of several requests (all, where none is named) must have in common, or not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Narrow, frozen=True, kw_only=True):
    """Settings for a driver, handed on with the allocation."""

    requests: tuple[str, ...] = ()
    opaque: Raw | None = None


class DeviceClaim(Narrow, frozen=True, kw_only=True):
    """The devices that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Narrow, frozen=True, kw_only=True):
    """What a claim asks for."""

    devices: DeviceClaim = DeviceClaim()


class DeviceResult(Narrow, frozen=True, kw_only=True):
    """A device that was allocated for a request (DeviceRequestAllocationResult)."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: ResourceList = {}


class AllocatedDevices(Narrow, frozen=True, kw_only=True):
    """The devices that a claim got, and the settings that go with them."""

    results: tuple[DeviceResult, ...] = ()
    config: tuple[Raw, ...] = ()


class AllocationResult(Narrow, frozen=True, kw_only=True):
    """What a claim got, and from where it can be used; without a selector, from everywhere."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(Narrow, frozen=True, kw_only=True):
    """Who may use a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Narrow, frozen=True, kw_only=True):
    """One observed condition of an allocated device."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Narrow, frozen=True, kw_only=True):
    """What its driver says of an allocated device."""

    driver: str
    pool: str
    device: str
    conditions: tuple[DeviceCondition, ...] = ()


class ResourceClaimStatus(Narrow, frozen=True, kw_only=True):
    """What a claim got, and who uses it."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Kubernetes, frozen=True, kw_only=True):
    """A claim for devices (resource.k8s.io/v1)."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def is_allocated(self) -> bool:
        """Whether the claim has its devices."""
        return self.status.allocation is not None

    @property
    def devices(self) -> frozenset[tuple[str, str, str]]:
        """The devices that it has, each by driver, pool and name; none where it has yet to get any."""
        allocation = self.status.allocation
        results = () if allocation is None else allocation.devices.results
        return frozenset((result.driver, result.pool, result.device) for result in results)

    @property
    def for_extended_resources(self) -> bool:
        """Whether a scheduler made the claim for a pod's extended resources."""
        return self.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"

    def is_reserved_for(self, uid: str) -> bool:
        """Whether the object of that uid may use the claim."""
        return any(consumer.uid == uid for consumer in self.status.reserved_for)


class ClaimTemplate(Narrow, frozen=True, kw_only=True):
    """What claims made from a template are like."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Kubernetes, frozen=True, kw_only=True):
    """What a claim is made from for each pod (resource.k8s.io/v1)."""

    spec: ClaimTemplate = ClaimTemplate()
