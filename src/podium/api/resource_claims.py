"""Claims for devices (resource.k8s.io/v1 ResourceClaim, ResourceClaimTemplate)."""

from __future__ import annotations

from typing import Literal

import msgspec

from podium.api.devices import DeviceSelector
from podium.api.meta import Int64, Kubernetes, Narrow, ObjectMeta, Raw
from podium.api.pod import PodCondition, ResourceList
from podium.api.selectors import NodeSelector

DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
"""The finalizer of allocated claims."""

EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of claims that a scheduler created for a pod's extended resources."""

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of claims from a template: their name in the pod."""

DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""The prefix of a class's implicit extended resource."""

MOST_RESULTS = 32
"""The maximum number of devices of a claim (AllocationResultsMaxSize)."""

MOST_ALTERNATIVES = 8
"""The maximum number of alternatives of a request (FirstAvailableDeviceRequestMaxSize)."""


class DeviceToleration(Narrow, frozen=True, kw_only=True):
    """A toleration of device taints; an empty key with Exists tolerates all, an empty effect matches every effect."""

    key: str = ""
    operator: Literal["", "Exists", "Equal"] = ""
    value: str = ""
    effect: Literal["", "None", "NoSchedule", "NoExecute"] = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Narrow, frozen=True, kw_only=True):
    """The requested amounts of a device's capacities."""

    requests: ResourceList = {}


class ExactDeviceRequest(Narrow, frozen=True, kw_only=True):
    """A request for devices of one class; the mode is ExactCount or All."""

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
    """A request for devices, or for the first available of several alternatives.

    The fields that v1beta1 has in the request itself are in `exactly` since v1beta2.
    """

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()

    @property
    def exact(self) -> ExactDeviceRequest | None:
        """The request without alternatives, in whichever version it is written."""
        if self.exactly is not None:
            return self.exactly
        return self if self.device_class_name else None


class DeviceConstraint(Narrow, frozen=True, kw_only=True):
    """A constraint on the devices of several requests (all, if none is named): common or distinct attributes."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Narrow, frozen=True, kw_only=True):
    """Driver configuration, passed on with the allocation."""

    requests: tuple[str, ...] = ()
    opaque: Raw | None = None


class DeviceClaim(Narrow, frozen=True, kw_only=True):
    """The devices that a claim requests."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Narrow, frozen=True, kw_only=True):
    """The desired state of a claim."""

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
    """The allocated devices of a claim, and their configuration."""

    results: tuple[DeviceResult, ...] = ()
    config: tuple[Raw, ...] = ()


class AllocationResult(Narrow, frozen=True, kw_only=True):
    """The allocation of a claim, and the nodes that can use it; without a selector, all nodes."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(Narrow, frozen=True, kw_only=True):
    """A user of a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Narrow, frozen=True, kw_only=True):
    """The driver's status of an allocated device."""

    driver: str
    pool: str
    device: str
    conditions: tuple[PodCondition, ...] = ()


class ResourceClaimStatus(Narrow, frozen=True, kw_only=True):
    """The allocation of a claim, and its users."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Kubernetes, frozen=True, kw_only=True):
    """A claim for devices (resource.k8s.io/v1)."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def is_allocated(self) -> bool:
        return self.status.allocation is not None

    @property
    def devices(self) -> frozenset[tuple[str, str, str]]:
        """The allocated devices, each by driver, pool and name; empty before the allocation."""
        allocation = self.status.allocation
        results = () if allocation is None else allocation.devices.results
        return frozenset((result.driver, result.pool, result.device) for result in results)

    @property
    def for_extended_resources(self) -> bool:
        """Return whether a scheduler created the claim for a pod's extended resources."""
        return self.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"

    def is_reserved_for(self, uid: str) -> bool:
        """Return whether the object with that uid may use the claim."""
        return any(consumer.uid == uid for consumer in self.status.reserved_for)


class ClaimTemplate(Narrow, frozen=True, kw_only=True):
    """The metadata and spec of claims from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Kubernetes, frozen=True, kw_only=True):
    """A template for the claims of individual pods (resource.k8s.io/v1)."""

    spec: ClaimTemplate = ClaimTemplate()
