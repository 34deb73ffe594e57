"""Devices of nodes, and their classes (resource.k8s.io/v1 ResourceSlice, DeviceClass, DeviceTaintRule)."""

from __future__ import annotations

from typing import Literal

import msgspec

from podium.api.meta import Int64, Kubernetes, Narrow, Raw
from podium.api.pod import Quantity
from podium.api.selectors import NodeSelector


class DeviceAttribute(Narrow, frozen=True, kw_only=True):
    """The value of an attribute: one of the four types."""

    int_: Int64 | None = msgspec.field(name="int", default=None)
    bool_: bool | None = msgspec.field(name="bool", default=None)
    string: str | None = None
    version: str | None = None


class CapacityRange(Narrow, frozen=True, kw_only=True):
    """The valid amounts of a capacity request: from `min` to `max`, in steps."""

    min: Quantity
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Narrow, frozen=True, kw_only=True):
    """The rounding of capacity requests, and the default amount."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Narrow, frozen=True, kw_only=True):
    """An amount of a capacity of a device."""

    value: Quantity
    request_policy: CapacityRequestPolicy | None = None


class Counter(Narrow, frozen=True, kw_only=True):
    """An amount that devices of a pool share."""

    value: Quantity


class CounterSet(Narrow, frozen=True, kw_only=True):
    """A named set of counters."""

    name: str
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(Narrow, frozen=True, kw_only=True):
    """The amounts of a counter set that an allocated device consumes."""

    counter_set: str
    counters: dict[str, Counter] = {}


class DeviceTaint(Narrow, frozen=True, kw_only=True):
    """A taint that excludes claims without a matching toleration."""

    key: str
    value: str = ""
    effect: Literal["None", "NoSchedule", "NoExecute"]


class DeviceFields(Narrow, frozen=True, kw_only=True):
    """The properties of a device."""

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


class Device(DeviceFields, frozen=True, kw_only=True):
    """A named device. The properties in `basic` of v1beta1 are in the device itself since v1beta2."""

    name: str
    basic: DeviceFields | None = None

    @property
    def fields(self) -> DeviceFields:
        """The device's properties, in whichever version they are written."""
        return self if self.basic is None else self.basic


class ResourcePool(Narrow, frozen=True, kw_only=True):
    """The pool of a slice: only slices of the latest generation count, and only if all of them exist."""

    name: str
    generation: Int64 = 0
    resource_slice_count: Int64 = 1


class ResourceSliceSpec(Narrow, frozen=True, kw_only=True):
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


class CELDeviceSelector(Narrow, frozen=True, kw_only=True):
    """A CEL expression that selects devices."""

    expression: str


class DeviceSelector(Narrow, frozen=True, kw_only=True):
    """A condition on devices."""

    cel: CELDeviceSelector | None = None


class DeviceClassConfiguration(Narrow, frozen=True, kw_only=True):
    """Driver configuration, passed on with the allocation."""

    opaque: Raw | None = None


class DeviceClassSpec(Narrow, frozen=True, kw_only=True):
    """The selectors of the class, and the extended resource that it provides."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Kubernetes, frozen=True, kw_only=True):
    """A class of devices that claims request (resource.k8s.io/v1)."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(Narrow, frozen=True, kw_only=True):
    """The devices that a rule taints; unset fields match any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Narrow, frozen=True, kw_only=True):
    """A taint, and the devices that get it."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint


class DeviceTaintRule(Kubernetes, frozen=True, kw_only=True):
    """An administrator's taint on devices (resource.k8s.io/v1beta2)."""

    spec: DeviceTaintRuleSpec
