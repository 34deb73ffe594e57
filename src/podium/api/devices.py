"""Devices of nodes, their classes and taints, and the claims for them (resource.k8s.io/v1)."""

from __future__ import annotations

from typing import Literal

import msgspec

from podium.api.meta import APIStruct, Int64, Kubernetes, ObjectMeta, Raw
from podium.api.pod import PodCondition, Quantity, ResourceList
from podium.api.selectors import NodeSelector


class DeviceAttribute(APIStruct, frozen=True, kw_only=True):
    """The value of an attribute: one of the four types."""

    int_: Int64 | None = msgspec.field(name="int", default=None)
    bool_: bool | None = msgspec.field(name="bool", default=None)
    string: str | None = None
    version: str | None = None


class CapacityRange(APIStruct, frozen=True, kw_only=True):
    """The valid amounts of a capacity request: from `min` to `max`, in steps."""

    min: Quantity
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(APIStruct, frozen=True, kw_only=True):
    """The rounding of capacity requests, and the default amount."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(APIStruct, frozen=True, kw_only=True):
    """An amount of a capacity of a device."""

    value: Quantity
    request_policy: CapacityRequestPolicy | None = None


class Counter(APIStruct, frozen=True, kw_only=True):
    """An amount that devices of a pool share."""

    value: Quantity


class CounterSet(APIStruct, frozen=True, kw_only=True):
    """A named set of counters."""

    name: str
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(APIStruct, frozen=True, kw_only=True):
    """The amounts of a counter set that an allocated device consumes."""

    counter_set: str
    counters: dict[str, Counter] = {}


class DeviceTaint(APIStruct, frozen=True, kw_only=True):
    """A taint that excludes claims without a matching toleration."""

    key: str
    value: str = ""
    effect: Literal["None", "NoSchedule", "NoExecute"]
    time_added: str | None = None


class Device(APIStruct, frozen=True, kw_only=True):
    """A named device."""

    name: str
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(APIStruct, frozen=True, kw_only=True):
    """The pool of a slice: only slices of the latest generation count, and only if all of them exist."""

    name: str
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(APIStruct, frozen=True, kw_only=True):
    """Devices of one driver and pool, or their shared counters, and the nodes that can use them."""

    driver: str
    pool: ResourcePool
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Kubernetes, frozen=True, kw_only=True):
    """A set of devices that a driver offers (resource.k8s.io/v1)."""

    spec: ResourceSliceSpec


class CELDeviceSelector(APIStruct, frozen=True, kw_only=True):
    """A CEL expression that selects devices."""

    expression: str


class DeviceSelector(APIStruct, frozen=True, kw_only=True):
    """A condition on devices."""

    cel: CELDeviceSelector | None = None


class DeviceClassConfiguration(APIStruct, frozen=True, kw_only=True):
    """Driver configuration, passed on with the allocation."""

    opaque: Raw | None = None


class DeviceClassSpec(APIStruct, frozen=True, kw_only=True):
    """The selectors of the class, and the extended resource that it provides."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Kubernetes, frozen=True, kw_only=True):
    """A class of devices that claims request (resource.k8s.io/v1)."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(APIStruct, frozen=True, kw_only=True):
    """The devices that a rule taints; unset fields match any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(APIStruct, frozen=True, kw_only=True):
    """A taint, and the devices that get it."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint


class DeviceTaintRule(Kubernetes, frozen=True, kw_only=True):
    """An administrator's taint on devices (resource.k8s.io/v1beta2)."""

    spec: DeviceTaintRuleSpec


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


class DeviceToleration(APIStruct, frozen=True, kw_only=True):
    """A toleration of device taints; an empty key with Exists tolerates all, an empty effect matches every effect."""

    key: str = ""
    operator: Literal["", "Exists", "Equal"] = ""
    value: str = ""
    effect: Literal["", "None", "NoSchedule", "NoExecute"] = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(APIStruct, frozen=True, kw_only=True):
    """The requested amounts of a device's capacities."""

    requests: ResourceList = {}


class ExactDeviceRequest(APIStruct, frozen=True, kw_only=True):
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


class DeviceRequest(APIStruct, frozen=True, kw_only=True):
    """A request for devices, or for the first available of several alternatives."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(APIStruct, frozen=True, kw_only=True):
    """A constraint on the devices of several requests (all, if none is named): common or distinct attributes."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(APIStruct, frozen=True, kw_only=True):
    """Driver configuration, passed on with the allocation."""

    requests: tuple[str, ...] = ()
    opaque: Raw | None = None


class DeviceClaim(APIStruct, frozen=True, kw_only=True):
    """The devices that a claim requests."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(APIStruct, frozen=True, kw_only=True):
    """The desired state of a claim."""

    devices: DeviceClaim = DeviceClaim()


class DeviceResult(APIStruct, frozen=True, kw_only=True):
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


class AllocatedDevices(APIStruct, frozen=True, kw_only=True):
    """The allocated devices of a claim, and their configuration."""

    results: tuple[DeviceResult, ...] = ()
    config: tuple[Raw, ...] = ()


class AllocationResult(APIStruct, frozen=True, kw_only=True):
    """The allocation of a claim, and the nodes that can use it; without a selector, all nodes."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(APIStruct, frozen=True, kw_only=True):
    """A user of a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(APIStruct, frozen=True, kw_only=True):
    """The driver's status of an allocated device."""

    driver: str
    pool: str
    device: str
    conditions: tuple[PodCondition, ...] = ()


class ResourceClaimStatus(APIStruct, frozen=True, kw_only=True):
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


class ClaimTemplate(APIStruct, frozen=True, kw_only=True):
    """The metadata and spec of claims from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Kubernetes, frozen=True, kw_only=True):
    """A template for the claims of individual pods (resource.k8s.io/v1)."""

    spec: ClaimTemplate = ClaimTemplate()
