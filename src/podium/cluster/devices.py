"""Devices that are offered, the classes of them, and what is allocated to whom.

Source: pkg/scheduler/framework/plugins/dynamicresources (dra_manager.go) and
k8s.io/dynamic-resource-allocation (resourceslice/tracker, deviceclass/extendedresourcecache).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from hashlib import blake2b
from typing import TypeVar

import msgspec

from podium.api.devices import Device, DeviceClass, DeviceTaintRule, ResourceSlice
from podium.api.resource_claims import DEVICE_CLASS_PREFIX, ResourceClaim
from podium.cluster.allocated_devices import PoolID
from podium.cluster.claim_book import ClaimBook
from podium.cluster.device_taints import tainted

DeviceObject = ResourceClaim | ResourceSlice | DeviceClass | DeviceTaintRule
NOTHING_OFFERED = b""
Key = TypeVar("Key", bound=Hashable)
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


def pool_of(item: ResourceSlice) -> PoolID:
    """The pool that a slice is a part of."""
    return item.spec.driver, item.spec.pool.name


def device_key(device: Device) -> bytes:
    """What a device is, name aside: equal for devices that are alike."""
    return _encode(device.fields)


class Devices:
    """Claims, slices and classes as the scheduler knows them.

    ``claims``, those ``in_flight`` and what is ``allocated`` stand in a ``book``. Slices carry the taints of the rules
    that concern them.
    """

    def __init__(self) -> None:
        self.book = ClaimBook(self._pool_changed)
        self.claims = self.book.claims
        self.in_flight = self.book.in_flight
        self.allocated = self.book.allocated
        self.classes: dict[str, DeviceClass] = {}
        self.slices: dict[str, ResourceSlice] = {}
        self.backed: dict[str, DeviceClass] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._written: dict[str, ResourceSlice] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._shared: dict[str, None] = {}
        self._in_pool: dict[PoolID, dict[str, None]] = {}
        self._offers: dict[str, bytes] = {}

    def find(self, item: DeviceObject) -> DeviceObject | None:
        """What is known of an object; None where it is new."""
        return self._table(item).get(item.key)

    def put(self, item: DeviceObject) -> bool:
        """Add or replace an object; whether that changed which extended resources classes stand for."""
        match item:
            case ResourceClaim():
                self.book.see(item)
            case ResourceSlice():
                self._remove_slice(item.key)
                self._put_slice(item)
            case DeviceTaintRule():
                self._rules[item.key] = item
                self._taint_anew()
            case DeviceClass():
                self.classes[item.key] = item
                return self._back()
        return False

    def remove(self, item: DeviceObject) -> bool:
        """Forget an object; whether that changed which extended resources classes stand for."""
        match item:
            case ResourceClaim():
                self.book.remove(item)
            case ResourceSlice():
                self._remove_slice(item.key)
            case DeviceTaintRule():
                self._rules.pop(item.key, None)
                self._taint_anew()
            case DeviceClass():
                self.classes.pop(item.key, None)
                return self._back()
        return False

    def on_node(self, name: str) -> Iterator[ResourceSlice]:
        """The slices whose devices are one node's, by name."""
        return (self.slices[key] for key in sorted(self._on_node.get(name, ())))

    @property
    def shared(self) -> Iterator[ResourceSlice]:
        """The slices that several nodes may use, and those with counters, by name."""
        return (self.slices[key] for key in sorted(self._shared))

    def in_pool(self, pool: PoolID) -> Iterator[ResourceSlice]:
        """All slices of a pool, of whatever generation, by name."""
        return (self.slices[key] for key in sorted(self._in_pool.get(pool, ())))

    def offer(self, node: str) -> bytes:
        """What a node offers and how much of that is free: equal for nodes on which any claim fares alike.

        Nodes that can use devices of others are like no other node.
        """
        if self._shared:
            return node.encode()
        offer = self._offers.get(node)
        if offer is None:
            offer = self._offers[node] = self._worked_out(node)
        return offer

    def _table(self, item: DeviceObject) -> Mapping[str, DeviceObject]:
        tables: dict[type, Mapping[str, DeviceObject]] = {
            ResourceClaim: self.claims,
            ResourceSlice: self._written,
            DeviceClass: self.classes,
            DeviceTaintRule: self._rules,
        }
        return tables[type(item)]

    # Slices

    def _put_slice(self, item: ResourceSlice) -> None:
        key, spec = item.key, item.spec
        self._written[key] = item
        self.slices[key] = tainted(item, self._rules)
        if spec.node_name and not spec.shared_counters:
            self._on_node.setdefault(spec.node_name, {})[key] = None
            self._offers.pop(spec.node_name, None)
        else:
            self._shared[key] = None
        self._in_pool.setdefault(pool_of(item), {})[key] = None
        self._pool_changed(pool_of(item))

    def _remove_slice(self, key: str) -> None:
        item = self._written.pop(key, None)
        if item is None:
            return
        del self.slices[key]
        self._shared.pop(key, None)
        _drop(self._on_node, item.spec.node_name, key)
        _drop(self._in_pool, pool_of(item), key)
        self._offers.pop(item.spec.node_name, None)
        self._pool_changed(pool_of(item))

    def _taint_anew(self) -> None:
        for key, item in self._written.items():
            self.slices[key] = tainted(item, self._rules)
        self._offers.clear()

    def _pool_changed(self, pool: PoolID) -> None:
        for key in self._in_pool.get(pool, ()):
            self._offers.pop(self._written[key].spec.node_name, None)

    # What nodes offer

    def _worked_out(self, node: str) -> bytes:
        slices = sorted(self.on_node(node), key=lambda slice_: (*pool_of(slice_), slice_.key))
        if not slices:
            return NOTHING_OFFERED
        digest = blake2b(digest_size=16)
        before: PoolID | None = None
        for slice_ in slices:
            pool = pool_of(slice_)
            if any(self._written[key].spec.node_name != node for key in self._in_pool[pool]):
                return node.encode()
            spec = slice_.spec
            digest.update(_encode((spec.driver, pool == before, spec.pool.generation, spec.pool.resource_slice_count)))
            digest.update(_encode([(device, self.allocated.state((*pool, device.name))) for device in spec.devices]))
            before = pool
        return digest.digest()

    # Classes

    def _back(self) -> bool:
        """Work out which class stands for an extended resource; whether that changed for any of them.

        Where several name the same, the one made last does, and of these the first by name.
        """
        before, self.backed = self.backed, {}
        by_age = sorted(self.classes.values(), key=lambda device_class: device_class.key, reverse=True)
        for device_class in sorted(by_age, key=lambda device_class: device_class.metadata.creation_timestamp or ""):
            if device_class.spec.extended_resource_name:
                self.backed[device_class.spec.extended_resource_name] = device_class
        self.backed.update(
            (f"{DEVICE_CLASS_PREFIX}{name}", device_class) for name, device_class in self.classes.items()
        )
        return self.backed.keys() != before.keys()


def _drop(index: dict[Key, dict[str, None]], name: Key, key: str) -> None:
    keys = index.get(name, {})
    keys.pop(key, None)
    if not keys:
        index.pop(name, None)
