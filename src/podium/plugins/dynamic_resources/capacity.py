"""What requests take of the capacity of devices that several may share.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.devices import CapacityRange, CapacityRequestPolicy, DeviceCapacity
from podium.api.pod import Quantity
from podium.api.quantity import parse_quantity, whole_value
from podium.api.resource_claims import CapacityRequirements

_NANO = 10**9
Amounts = Mapping[str, int]
"""Amounts in nano units by the capacity's name."""


def consumed(wanted: CapacityRequirements | None, capacity: Mapping[str, DeviceCapacity]) -> dict[str, int]:
    """What a request takes of each capacity of a device."""
    requests = {} if wanted is None else wanted.requests
    return {name: _consumed(requests.get(name), offered) for name, offered in capacity.items()}


def fits(
    wanted: CapacityRequirements | None, capacity: Mapping[str, DeviceCapacity], taken: Amounts, taking: Amounts
) -> bool:
    """Whether a request can be served beside what others have ``taken`` and what is being taken for this pod."""
    if wanted is not None and not wanted.requests.keys() <= capacity.keys():
        return False
    for name, amount in consumed(wanted, capacity).items():
        offered = capacity[name]
        if offered.request_policy is not None and _violates(amount, offered.request_policy):
            return False
        if amount + taken.get(name, 0) + taking.get(name, 0) > parse_quantity(offered.value):
            return False
    return True


def _consumed(wanted: Quantity | None, capacity: DeviceCapacity) -> int:
    policy = capacity.request_policy
    if wanted is None:
        default = None if policy is None else policy.default
        return parse_quantity(capacity.value if default is None else default)
    if policy is None:
        return parse_quantity(wanted)
    if policy.valid_range is not None:
        return _rounded_up(wanted, policy.valid_range)
    amount = parse_quantity(wanted)
    return next((valid for valid in map(parse_quantity, policy.valid_values) if amount <= valid), amount)


def _rounded_up(wanted: Quantity, valid: CapacityRange) -> int:
    amount, least = parse_quantity(wanted), parse_quantity(valid.min)
    if amount < least or valid.step is None:
        return max(amount, least)
    first, step = whole_value(valid.min), whole_value(valid.step)
    steps = -(-(whole_value(wanted) - first) // step) if step else 0
    return (first + steps * step) * _NANO


def _violates(amount: int, policy: CapacityRequestPolicy) -> bool:
    if policy.default is not None and amount == parse_quantity(policy.default):
        return False
    valid = policy.valid_range
    if valid is None:
        return bool(policy.valid_values) and amount not in map(parse_quantity, policy.valid_values)
    if valid.max is not None and amount > parse_quantity(valid.max):
        return True
    if valid.step is None:
        return False
    step = whole_value(valid.step)
    return bool(step) and (-(-amount // _NANO) - whole_value(valid.min)) % step != 0
