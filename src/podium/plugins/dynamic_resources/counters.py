"""Counters that the devices of a pool share.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
(checkAvailableCounters, deallocateCountersForDevice).
"""

from __future__ import annotations

from podium.api.devices import Device
from podium.api.quantity import parse_quantity
from podium.cluster.allocated_devices import Allocated
from podium.plugins.dynamic_resources.pools import Candidate, Counters, Pool


class CounterBook:
    """What is left of the counters of each pool, and what is being taken for a pod.

    Pools go by their names alone, as they do upstream: of two drivers' pools of one name, the first counts.
    """

    def __init__(self, allocated: Allocated) -> None:
        self._allocated = allocated
        self._available: dict[str, Counters] = {}
        self._taken: dict[str, Counters] = {}

    def take(self, candidate: Candidate) -> bool:
        """Take what a device consumes; False, with nothing taken, where there is not enough."""
        pool = candidate.pool
        available = self._available.get(pool.name)
        if available is None:
            available = self._available[pool.name] = self._left(pool)
        taken = self._taken.setdefault(pool.name, {})
        _add(taken, candidate.device, 1)
        for name, counters in available.items():
            here = taken.get(name, {})
            if any(here.get(counter, 0) > amount for counter, amount in counters.items()):
                self.give_back(candidate)
                return False
        return True

    def give_back(self, candidate: Candidate) -> None:
        """Give back what a device consumes."""
        _add(self._taken[candidate.pool.name], candidate.device, -1)

    def _left(self, pool: Pool) -> Counters:
        """What the devices leave that somebody holds; that may be less than nothing."""
        left = {name: dict(counters) for name, counters in pool.counters.items()}
        for id_, device in pool.all_devices():
            if id_ not in self._allocated:
                continue
            for consumed in device.fields.consumes_counters:
                counters = left.get(consumed.counter_set, {})
                for name, counter in consumed.counters.items():
                    if name in counters:
                        counters[name] -= parse_quantity(counter.value)
        return left


def _add(taken: Counters, device: Device, sign: int) -> None:
    for consumed in device.fields.consumes_counters:
        counters = taken.setdefault(consumed.counter_set, {})
        for name, counter in consumed.counters.items():
            counters[name] = counters.get(name, 0) + sign * parse_quantity(counter.value)
