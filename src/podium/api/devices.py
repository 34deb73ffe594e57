"""Devices that nodes offer, and classes of them (resource.k8s.io/v1 ResourceSlice, DeviceClass, DeviceTaintRule)."""

from __future__ import annotations

from typing import Literal

import msgspec

from podium.api.meta import Int64, Kubernetes, Narrow, Raw
from podium.api.pod import Quantity
from podium.api.selection import NodeSelector


class DeviceAttribute(Narrow, frozen=True, kw_only=True):
    """The value of an attribute: one of the four."""

    int_: Int64 | None = msgspec.field(name="int", default=None)
    bool_: bool | None = msgspec.field(name="bool", default=None)
    string: str | None = None
    version: str | None = None


class CapacityRange(Narrow, frozen=True, kw_only=True):
    """The amounts that may be consumed: from `min` on, up to `max`, in steps."""

    min: Quantity
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Narrow, frozen=True, kw_only=True):
    """How requests for a capacity are rounded, and what is consumed without one."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Narrow, frozen=True, kw_only=True):
    """How much of something a device has."""

    value: Quantity
    request_policy: CapacityRequestPolicy | None = None


class Counter(Narrow, frozen=True, kw_only=True):
    """An amount that devices of a pool share."""

    value: Quantity


class CounterSet(Narrow, frozen=True, kw_only=True):
    """Amounts under one name."""

    name: str
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(Narrow, frozen=True, kw_only=True):
    """What a device takes of a counter set while it is allocated."""

    counter_set: str
    counters: dict[str, Counter] = {}


class DeviceTaint(Narrow, frozen=True, kw_only=True):
    """What keeps claims without a toleration away from a device."""

    key: str
    value: str = ""
    effect: Literal["None", "NoSchedule", "NoExecute"]


class DeviceFields(Narrow, frozen=True, kw_only=True):
    """What a device is."""

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
    """A device under its name. What v1beta1 has in `basic` stands in the device itself since v1beta2."""

    name: str
    basic: DeviceFields | None = None

    @property
    def fields(self) -> DeviceFields:
        """What the device is, in whatever version it was written."""
        return self if self.basic is None else self.basic


class ResourcePool(Narrow, frozen=True, kw_only=True):
    """The pool that a slice is a part of: only slices of the latest generation count, and only all of them together."""

    name: str
    generation: Int64 = 0
    resource_slice_count: Int64 = 1


class ResourceSliceSpec(Narrow, frozen=True, kw_only=True):
    """Devices of one driver and pool, or counters that they share, and the nodes from which they can be used."""

    driver: str
    pool: ResourcePool
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Kubernetes, frozen=True, kw_only=True):
    """What a driver offers (resource.k8s.io/v1)."""

    spec: ResourceSliceSpec


class CELDeviceSelector(Narrow, frozen=True, kw_only=True):
    """An expression that says which devices will do."""

    expression: str


class DeviceSelector(Narrow, frozen=True, kw_only=True):
    """What a device must be like."""

    cel: CELDeviceSelector | None = None


class DeviceClassConfiguration(Narrow, frozen=True, kw_only=True):
    """Settings for a driver, handed on with the allocation."""

    opaque: Raw | None = None


class DeviceClassSpec(Narrow, frozen=True, kw_only=True):
    """What devices of the class are like, and the extended resource that stands for it."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Kubernetes, frozen=True, kw_only=True):
    """A kind of device that claims ask for (resource.k8s.io/v1)."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(Narrow, frozen=True, kw_only=True):
    """Which devices a rule taints; what is not given is any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Narrow, frozen=True, kw_only=True):
    """A taint, and the devices that get it."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint


class DeviceTaintRule(Kubernetes, frozen=True, kw_only=True):
    """A taint put on devices by an administrator (resource.k8s.io/v1beta2)."""

    spec: DeviceTaintRuleSpec
