"""Checks of devices and claims: what no API server stores, and what would make the search for devices endless.

Source: pkg/apis/resource/validation, and the limits of resource.k8s.io/v1. What may be right in a newer version of the
API, such as an expression that cannot be compiled here, is for the scheduler to stumble over.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.cel.syntax import MAX_LENGTH
from podium.api.checks import check_count
from podium.api.devices import (
    Counter,
    Device,
    DeviceClass,
    DeviceSelector,
    ResourceSlice,
)
from podium.api.errors import InputError, field_path
from podium.api.pod import Quantity
from podium.api.resource_claims import ExactDeviceRequest, ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate
from podium.api.soundness.resources import check_quantity
from podium.api.soundness.selection import check_node_selector

_MOST_DEVICES = 128
_MOST = 32
_MOST_TAINTS = 16
_MOST_USERS = 256


def check_resource_slice(item: ResourceSlice) -> None:
    """A slice: at most 128 devices, each with at most 32 attributes and capacities."""
    spec = item.spec
    check_count(spec.devices, ".spec.devices", _MOST_DEVICES)
    check_count(spec.shared_counters, ".spec.sharedCounters", _MOST)
    if spec.pool.resource_slice_count < 1:
        problem = f"{spec.pool.resource_slice_count} is out of range; it must be 1 or more"
        raise InputError(problem, path=".spec.pool.resourceSliceCount")
    if spec.node_selector is not None:
        check_node_selector(spec.node_selector, ".spec.nodeSelector")
    for index, counters in enumerate(spec.shared_counters):
        _check_counters(counters.counters, f".spec.sharedCounters[{index}].counters")
    for index, device in enumerate(spec.devices):
        _check_device(device, f".spec.devices[{index}]")


def check_device_class(item: DeviceClass) -> None:
    """A class: its selectors."""
    _check_selectors(item.spec.selectors, ".spec.selectors")


def check_resource_claim(item: ResourceClaim) -> None:
    """A claim: at most 32 requests and constraints; what it has was something that could be allocated."""
    _check_spec(item.spec, ".spec")
    check_count(item.status.reserved_for, ".status.reservedFor", _MOST_USERS)
    allocation = item.status.allocation
    if allocation is None:
        return
    path = ".status.allocation"
    check_count(allocation.devices.results, f"{path}.devices.results", _MOST)
    if allocation.node_selector is not None:
        check_node_selector(allocation.node_selector, f"{path}.nodeSelector")
    for index, result in enumerate(allocation.devices.results):
        _check_quantities(result.consumed_capacity, f"{path}.devices.results[{index}].consumedCapacity")


def check_resource_claim_template(item: ResourceClaimTemplate) -> None:
    """A template: the claims that are made from it."""
    _check_spec(item.spec.spec, ".spec.spec")


def _check_device(device: Device, path: str) -> None:
    fields = device.fields
    if device.basic is not None:
        path = f"{path}.basic"
    check_count([*fields.attributes, *fields.capacity], f"{path}.attributes", _MOST)
    check_count(fields.consumes_counters, f"{path}.consumesCounters", _MOST)
    check_count(fields.taints, f"{path}.taints", _MOST_TAINTS)
    if fields.node_selector is not None:
        check_node_selector(fields.node_selector, f"{path}.nodeSelector")
    for name, attribute in fields.attributes.items():
        values = (attribute.int_, attribute.bool_, attribute.string, attribute.version)
        if sum(value is not None for value in values) > 1:
            raise InputError("has several values; give one", path=field_path(f"{path}.attributes", name))
    for name, capacity in fields.capacity.items():
        check_quantity(capacity.value, f"{field_path(f'{path}.capacity', name)}.value")
        policy = capacity.request_policy
        if policy is None:
            continue
        amounts = [policy.default, *policy.valid_values]
        if policy.valid_range is not None:
            amounts += [policy.valid_range.min, policy.valid_range.max, policy.valid_range.step]
        for amount in amounts:
            check_quantity(amount, f"{field_path(f'{path}.capacity', name)}.requestPolicy")
    for index, consumed in enumerate(fields.consumes_counters):
        _check_counters(consumed.counters, f"{path}.consumesCounters[{index}].counters")


def _check_counters(counters: Mapping[str, Counter], path: str) -> None:
    check_count(counters, path, _MOST)
    for name, counter in counters.items():
        check_quantity(counter.value, f"{field_path(path, name)}.value")


def _check_spec(spec: ResourceClaimSpec, path: str) -> None:
    path = f"{path}.devices"
    check_count(spec.devices.requests, f"{path}.requests", _MOST)
    check_count(spec.devices.constraints, f"{path}.constraints", _MOST)
    check_count(spec.devices.config, f"{path}.config", _MOST)
    for index, request in enumerate(spec.devices.requests):
        place = f"{path}.requests[{index}]"
        check_count(request.first_available, f"{place}.firstAvailable", _MOST)
        if request.exact is not None:
            _check_request(request.exact, f"{place}.exactly" if request.exactly is not None else place)
        for number, subrequest in enumerate(request.first_available):
            _check_request(subrequest, f"{place}.firstAvailable[{number}]")


def _check_request(request: ExactDeviceRequest, path: str) -> None:
    _check_selectors(request.selectors, f"{path}.selectors")
    check_count(request.tolerations, f"{path}.tolerations", _MOST_TAINTS)
    if request.allocation_mode == "ExactCount" and request.count < 1:
        raise InputError(f"{request.count} is out of range; it must be 1 or more", path=f"{path}.count")
    if request.capacity is not None:
        _check_quantities(request.capacity.requests, f"{path}.capacity.requests")


def _check_quantities(amounts: Mapping[str, Quantity], path: str) -> None:
    check_count(amounts, path, _MOST)
    for name, amount in amounts.items():
        check_quantity(amount, field_path(path, name))


def _check_selectors(selectors: tuple[DeviceSelector, ...], path: str) -> None:
    check_count(selectors, path, _MOST)
    for index, selector in enumerate(selectors):
        if selector.cel is not None and len(selector.cel.expression) > MAX_LENGTH:
            problem = f"has {len(selector.cel.expression)} characters; at most {MAX_LENGTH} are taken"
            raise InputError(problem, path=f"{path}[{index}].cel.expression")
