"""Slices of the devices that a driver offers (pkg/apis/resource/validation)."""

from __future__ import annotations

from podium.api.names import label_name_problem, subdomain_problem
from podium.api.validation.devices import check_device_taint, check_driver_name, check_qualified_name
from podium.api.validation.metadata import check_own_name
from podium.api.validation.place import Place
from podium.api.validation.selectors import check_node_selector

_VALUES = ("bool", "bools", "int", "ints", "string", "strings", "version", "versions")
_NODES = ("nodeName", "nodeSelector", "allNodes")
_NODES_OF_SLICE = (*_NODES, "perDeviceNodeSelection")


def check_resource_slice(resource_slice: Place) -> None:
    """A slice: its driver and pool, from which nodes its devices can be used, and the devices."""
    spec = resource_slice.child_or_empty("spec")
    check_driver_name(spec, "driver")
    _check_pool(spec.child_or_empty("pool"))
    _check_nodes(spec, _NODES_OF_SLICE)
    if spec.has("sharedCounters") and spec.has("devices"):
        spec.invalid("", spec.value, "only one of `sharedCounters` or `devices` is allowed")
    names: set[str] = set()
    for device in spec.objects("devices"):
        check_own_name(device, names)
        _check_device(device.child("basic") or device, is_placed=spec.flag("perDeviceNodeSelection"))
    names = set()
    for counters in spec.objects("sharedCounters"):
        check_own_name(counters, names)
        counters.require("counters")


def _check_pool(pool: Place) -> None:
    pool.require("name")
    if pool.text("name"):
        for part in pool.text("name").split("/"):
            pool.check("name", subdomain_problem(part))
    count = pool.number("resourceSliceCount")
    if count is None or count <= 0:
        pool.invalid("resourceSliceCount", count or 0, "must be greater than zero")
    pool.check_not_negative("generation")


def _check_nodes(place: Place, fields: tuple[str, ...]) -> None:
    """From which nodes something can be used, which stands in exactly one of the fields."""
    rule = f"exactly one of {', '.join(f'`{name}`' for name in fields)} is required"
    given = [name for name in fields if place.has(name)]
    if not given:
        place.required("", rule)
    elif len(given) > 1:
        place.invalid("", place.value, f"{rule}, but multiple fields are set")
    for name in given:
        if place.value[name] is False or place.value[name] == "":
            place.invalid(name, place.value[name], "must be either unset or set to what it is for")
    if place.text("nodeName"):
        place.check("nodeName", subdomain_problem(place.text("nodeName")))
    check_node_selector(place, "nodeSelector")


def _check_device(device: Place, *, is_placed: bool) -> None:
    """A device; one that `is_placed` says itself from which nodes it can be used."""
    if is_placed:
        _check_nodes(device, _NODES)
    elif any(device.has(name) for name in _NODES):
        rule = "can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        device.invalid("", device.value, f"`nodeName`, `nodeSelector` and `allNodes` {rule}")
    for name, attribute in device.mapping("attributes"):
        check_qualified_name(attribute, "", name)
        if not isinstance(attribute.value, dict) or sum(attribute.has(value) for value in _VALUES) != 1:
            attribute.invalid("", attribute.value, "exactly one value must be specified")
    for name, capacity in device.mapping("capacity"):
        check_qualified_name(capacity, "", name)
    for consumed in device.objects("consumesCounters"):
        consumed.require("counterSet", "counters")
        if consumed.text("counterSet"):
            consumed.check("counterSet", label_name_problem(consumed.text("counterSet")))
    for taint in device.objects("taints"):
        check_device_taint(taint)
