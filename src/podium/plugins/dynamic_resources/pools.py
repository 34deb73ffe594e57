"""The device pools that a node can use, if all their slices are known.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from podium.api.devices import Device, ResourceSlice
from podium.api.node import Node
from podium.api.quantity import parse_quantity
from podium.api.selectors import NodeSelector, NodeTerm, compile_node_selector, node_selector_matches
from podium.cluster.devices import DeviceID, Devices, PoolID, pool_of

Counters = dict[str, dict[str, int]]
"""Amounts in nano units, by counter set and counter."""


@dataclass(frozen=True, slots=True, eq=False)
class CandidateDevice:
    """A device that might be allocated."""

    id: DeviceID
    device: Device
    slice: ResourceSlice
    pool: Pool


@dataclass(slots=True, eq=False)
class Pool:
    """The slices of a pool's latest generation.

    ``slices`` have devices for the node, ``others`` only for other nodes. ``is_incomplete`` and ``is_invalid`` pools
    have no candidates, except for the slices of the node in incomplete ones before 1.35.
    """

    driver: str
    name: str
    slices: tuple[ResourceSlice, ...] = ()
    others: tuple[ResourceSlice, ...] = ()
    counters: Counters = field(default_factory=dict)
    is_incomplete: bool = False
    is_invalid: bool = False
    candidates: tuple[CandidateDevice, ...] = ()

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"

    def all_devices(self) -> Iterator[tuple[DeviceID, Device]]:
        for slice_ in (*self.slices, *self.others):
            for device in slice_.spec.devices:
                yield (self.driver, self.name, device.name), device


def node_matches(node: Node, name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> bool:
    """Return whether a node has that name, or all nodes match, or the selector matches it."""
    if name:
        return node.metadata.name == name
    if all_nodes:
        return True
    if selector is None:
        return False
    return node_selector_matches(_terms(selector), node.metadata.labels, node.metadata.name)


@lru_cache(maxsize=1_024)
def _terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    return compile_node_selector(selector)


def gather_pools(devices: Devices, node: Node) -> list[Pool]:
    """Return the pools that a node can use, by driver and name; those with binding conditions come last."""
    found: dict[PoolID, list[ResourceSlice]] = {}
    for slice_ in (*devices.on_node(node.metadata.name), *devices.shared):
        if _is_relevant(slice_, node):
            slices, generation = found.setdefault(pool_of(slice_), []), slice_.spec.pool.generation
            # Those of the latest generation count.
            if slices and generation > slices[0].spec.pool.generation:
                slices.clear()
            if not slices or generation == slices[0].spec.pool.generation:
                slices.append(slice_)
    pools = [made for pool, slices in sorted(found.items()) if (made := _pool(devices, pool, slices)) is not None]

    def has_binding_conditions(pool: Pool) -> bool:
        return any(each.device.fields.binding_conditions for each in pool.candidates)

    # Ordering by name lets drivers choose which pools are used first.
    return sorted(pools, key=has_binding_conditions)


def _is_relevant(slice_: ResourceSlice, node: Node) -> bool:
    spec = slice_.spec
    if spec.shared_counters:
        return True
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector)
    if not spec.per_device_node_selection:
        return False
    fields = (device.fields for device in spec.devices)
    return any(node_matches(node, each.node_name, each.all_nodes, each.node_selector) for each in fields)


def _pool(devices: Devices, pool: PoolID, slices: list[ResourceSlice]) -> Pool | None:
    """Return the pool of these slices; None if another node has a later generation."""
    wanted, generation = slices[0].spec.pool.resource_slice_count, slices[0].spec.pool.generation
    others: list[ResourceSlice] = []
    is_incomplete = len(slices) != wanted and not devices.skips_incomplete_pools
    if len(slices) != wanted and not is_incomplete:
        everywhere = list(devices.in_pool(pool))
        if any(slice_.spec.pool.generation > generation for slice_ in everywhere):
            return None
        of_generation = [slice_ for slice_ in everywhere if slice_.spec.pool.generation == generation]
        if len(of_generation) != wanted:
            return Pool(*pool, is_incomplete=True)
        here = {slice_.key for slice_ in slices}
        others = [slice_ for slice_ in of_generation if slice_.key not in here]
    slices = sorted(slices, key=lambda slice_: slice_.key)
    with_devices = tuple(slice_ for slice_ in slices if not slice_.spec.shared_counters)
    is_invalid = not _is_valid(slices, others)
    made = Pool(*pool, with_devices, tuple(others), is_incomplete=is_incomplete, is_invalid=is_invalid)
    if not made.is_invalid:
        made.counters = _counters(slices)
        made.candidates = tuple(
            CandidateDevice((*pool, device.name), device, with_device, made)
            for with_device in with_devices
            for device in with_device.spec.devices
        )
    return made


def _is_valid(slices: Iterable[ResourceSlice], others: Iterable[ResourceSlice]) -> bool:
    """Return whether names of devices and counter sets are unique, and all consumed counters exist."""
    sets = [shared_counter for each in slices for shared_counter in each.spec.shared_counters]
    names = [device.name for each in slices if not each.spec.shared_counters for device in each.spec.devices]
    known = {counters.name: counters.counters.keys() for counters in sets}
    if len(known) < len(sets) or len(set(names)) < len(names):
        return False
    consumed = (
        consumes_counter
        for each in (*slices, *others)
        for device in each.spec.devices
        for consumes_counter in device.fields.consumes_counters
    )
    return all(
        consumption.counter_set in known and consumption.counters.keys() <= known[consumption.counter_set]
        for consumption in consumed
    )


def _counters(slices: Iterable[ResourceSlice]) -> Counters:
    return {
        shared_counter.name: {name: parse_quantity(counter.value) for name, counter in shared_counter.counters.items()}
        for each in slices
        for shared_counter in each.spec.shared_counters
    }
