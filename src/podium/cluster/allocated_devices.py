"""Which devices claims hold, for themselves or together with others.

Source: pkg/scheduler/framework/plugins/dynamicresources (allocateddevices.go).
"""

from __future__ import annotations

from podium.api.quantity import parse_quantity
from podium.api.resource_claims import AllocationResult, DeviceResult

DeviceID = tuple[str, str, str]
"""A device's driver, pool and name."""

PoolID = tuple[str, str]
"""A pool's driver and name."""


class Allocated:
    """The devices that claims hold. Those for administrators are held by nobody.

    ``dedicated`` counts the claims that have a device for themselves, ``shared`` those that share it, and ``capacity``
    is what these take of it, in nano units.
    """

    def __init__(self) -> None:
        self.dedicated: dict[DeviceID, int] = {}
        self.shared: dict[DeviceID, int] = {}
        self.capacity: dict[DeviceID, dict[str, int]] = {}

    def __contains__(self, device: DeviceID) -> bool:
        """Whether anybody holds the device or a part of it."""
        return device in self.dedicated or device in self.shared

    def count(self, allocation: AllocationResult, sign: int) -> None:
        """Let a claim's devices be held (1) or given back (-1)."""
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = (result.driver, result.pool, result.device)
            if result.share_id is None:
                _add(self.dedicated, device, sign)
            else:
                _add(self.shared, device, sign)
                self._consume(device, result, sign)

    def state(self, device: DeviceID) -> tuple[object, ...]:
        """All that is known of who holds the device; () for nobody."""
        if device not in self:
            return ()
        return device in self.dedicated, device in self.shared, sorted(self.capacity.get(device, {}).items())

    def _consume(self, device: DeviceID, result: DeviceResult, sign: int) -> None:
        taken = self.capacity.setdefault(device, {})
        for name, amount in result.consumed_capacity.items():
            taken[name] = taken.get(name, 0) + sign * parse_quantity(amount)
        if device not in self.shared:
            del self.capacity[device]


def _add(counts: dict[DeviceID, int], device: DeviceID, sign: int) -> None:
    counts[device] = number = counts.get(device, 0) + sign
    if not number:
        del counts[device]
