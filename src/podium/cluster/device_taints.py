"""The taints that DeviceTaintRules add to devices.

Source: k8s.io/dynamic-resource-allocation/resourceslice/tracker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from podium.api.devices import Device, DeviceTaintRule, ResourceSlice


def tainted(item: ResourceSlice, rules: Mapping[str, DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of the rules that concern its devices, in the order of the rules' names."""
    concerned = [rule for _, rule in sorted(rules.items()) if _concerns(rule, item)]
    if not concerned:
        return item
    devices = tuple(_with_taints(device, concerned) for device in item.spec.devices)
    return msgspec.structs.replace(item, spec=msgspec.structs.replace(item.spec, devices=devices))


def _concerns(rule: DeviceTaintRule, item: ResourceSlice) -> bool:
    selector = rule.spec.device_selector
    if selector is None:
        return True
    return selector.driver in (None, item.spec.driver) and selector.pool in (None, item.spec.pool.name)


def _with_taints(device: Device, rules: Iterable[DeviceTaintRule]) -> Device:
    added = tuple(
        rule.spec.taint
        for rule in rules
        if rule.spec.device_selector is None or rule.spec.device_selector.device in (None, device.name)
    )
    if not added:
        return device
    if device.basic is not None:
        basic = msgspec.structs.replace(device.basic, taints=device.basic.taints + added)
        return msgspec.structs.replace(device, basic=basic)
    return msgspec.structs.replace(device, taints=device.taints + added)
