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
from podium.api.resource_claims import (
    DELETE_PROTECTION,
    DEVICE_CLASS_PREFIX,
    ResourceClaim,
)
from podium.cluster.allocated_devices import Allocated
from podium.cluster.device_taints import tainted

DeviceObject = ResourceClaim | ResourceSlice | DeviceClass | DeviceTaintRule
PoolID = tuple[str, str]
"""A pool's driver and name."""

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

    ``in_flight`` are claims by uid as they will be once an allocation that was decided is written: their devices count
    as taken, from then on until the claim is seen with them. Slices carry the taints of the rules that concern them.
    """

    def __init__(self) -> None:
        self.claims: dict[str, ResourceClaim] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.slices: dict[str, ResourceSlice] = {}
        self.in_flight: dict[str, ResourceClaim] = {}
        self._unseen: dict[str, None] = {}
        # By the uid of a pod, the uids of claims that it was taken off; readings from before that may still come.
        self._let_go: dict[str, set[str]] = {}
        self.allocated = Allocated()
        self.backed: dict[str, DeviceClass] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._written: dict[str, ResourceSlice] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._shared: dict[str, None] = {}
        self._in_pool: dict[PoolID, dict[str, None]] = {}
        self._made_for: dict[str, dict[str, None]] = {}
        self._offers: dict[str, bytes] = {}

    def find(self, item: DeviceObject) -> DeviceObject | None:
        """What is known of an object; None where it is new."""
        return self._table(item).get(item.key)

    def put(self, item: DeviceObject) -> bool:
        """Add or replace an object; whether that changed which extended resources classes stand for."""
        match item:
            case ResourceClaim():
                self._put_claim(item)
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
                self._forget_claim(item.key)
                self.forget_in_flight(item.metadata.uid)
            case ResourceSlice():
                self._remove_slice(item.key)
            case DeviceTaintRule():
                self._rules.pop(item.key, None)
                self._taint_anew()
            case DeviceClass():
                self.classes.pop(item.key, None)
                return self._back()
        return False

    def assume(self, claim: ResourceClaim) -> None:
        """Count an allocation that is decided and yet to be written; ``claim`` is what it will be."""
        self.forget_in_flight(claim.metadata.uid)
        self.in_flight[claim.metadata.uid] = claim
        self._count(claim, 1)

    def written(self, uid: str) -> None:
        """An allocation was written. It counts until it is seen, or seen to be over."""
        if uid in self.in_flight:
            self._unseen[uid] = None

    def let_go(self, uid: str, pod_uid: str) -> None:
        """A pod is taken off a claim. What is read of that claim does not say any more that the pod may use it."""
        self._let_go.setdefault(pod_uid, set()).add(uid)

    def reserved(self, uid: str, pod_uid: str) -> None:
        """A pod was put on a claim."""
        self._let_go.get(pod_uid, set()).discard(uid)

    def is_reserved_for(self, claim: ResourceClaim, pod_uid: str) -> bool:
        """Whether the pod may surely use the claim."""
        return claim.is_reserved_for(pod_uid) and claim.metadata.uid not in self._let_go.get(pod_uid, ())

    def forget_pod(self, uid: str) -> None:
        """A pod is gone, or not to be bound."""
        if self.in_flight or self._unseen:
            self.forget_in_flight(uid)
        if self._let_go:
            self._let_go.pop(uid, None)

    def forget_unwritten(self, uid: str) -> None:
        """Let go of what `assume` counted, unless it was written."""
        if uid not in self._unseen:
            self.forget_in_flight(uid)

    def forget_in_flight(self, uid: str) -> None:
        """Let go of what `assume` counted."""
        claim = self.in_flight.pop(uid, None)
        self._unseen.pop(uid, None)
        if claim is not None:
            self._count(claim, -1)

    def made_for(self, pod_uid: str) -> ResourceClaim | None:
        """The claim that a scheduler made for a pod's extended resources, or None."""
        keys = self._made_for.get(pod_uid)
        return self.claims[min(keys)] if keys else None

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

    # Claims

    def _put_claim(self, claim: ResourceClaim) -> None:
        self._forget_claim(claim.key)
        self.claims[claim.key] = claim
        uid = claim.metadata.uid
        if claim.is_allocated or (uid in self._unseen and _is_over(self.in_flight[uid], claim)):
            self.forget_in_flight(uid)
        self._count(claim, 1)
        owner = claim.metadata.controller
        if claim.for_extended_resources and owner is not None:
            self._made_for.setdefault(owner.uid, {})[claim.key] = None
            made = self.in_flight.get(owner.uid)
            # What is seen may be one that was made for the pod before, and is given up.
            if made is not None and claim.is_allocated and claim.devices == made.devices:
                self.forget_in_flight(owner.uid)

    def _forget_claim(self, key: str) -> None:
        claim = self.claims.pop(key, None)
        if claim is None:
            return
        self._count(claim, -1)
        owner = claim.metadata.controller
        if owner is not None and key in self._made_for.get(owner.uid, ()):
            del self._made_for[owner.uid][key]
            if not self._made_for[owner.uid]:
                del self._made_for[owner.uid]

    def _count(self, claim: ResourceClaim, sign: int) -> None:
        allocation = claim.status.allocation
        if allocation is None:
            return
        self.allocated.count(allocation, sign)
        for pool in {(result.driver, result.pool) for result in allocation.devices.results}:
            self._pool_changed(pool)

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


def _is_over(before: ResourceClaim, claim: ResourceClaim) -> bool:
    """Whether a claim without devices is seen as it was after it had them, and not as it was on its way to them.

    ``before`` is the claim that they were decided for. It is protected before it is given them, if it was not already.
    """
    versions = (before.metadata.resource_version, claim.metadata.resource_version)
    if not all(version.isdecimal() for version in versions) or int(versions[0]) >= int(versions[1]):
        return False
    return DELETE_PROTECTION in before.metadata.finalizers or DELETE_PROTECTION not in claim.metadata.finalizers


def _drop(index: dict[Key, dict[str, None]], name: Key, key: str) -> None:
    keys = index.get(name, {})
    keys.pop(key, None)
    if not keys:
        index.pop(name, None)
