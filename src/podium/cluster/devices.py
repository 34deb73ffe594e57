"""Offered devices, device classes, and the claims that devices are allocated to.

Source: pkg/scheduler/framework/plugins/dynamicresources (dra_manager.go, allocateddevices.go) and
k8s.io/dynamic-resource-allocation (resourceslice/tracker, deviceclass/extendedresourcecache).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from podium.api.devices import (
    DEVICE_CLASS_PREFIX,
    AllocationResult,
    Device,
    DeviceClass,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceClaim,
    ResourceSlice,
)
from podium.api.meta import is_older
from podium.api.quantity import parse_quantity
from podium.api.versions.gates import Gate
from podium.api.versions.release import DEFAULT_RELEASE, Behavior, Release
from podium.cluster.arrays import add_count, discard

DeviceObject = ResourceClaim | ResourceSlice | DeviceClass | DeviceTaintRule
NOTHING_OFFERED = b""
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


def pool_of(item: ResourceSlice) -> PoolID:
    """Return the pool of a slice."""
    return item.spec.driver, item.spec.pool.name


def device_key(device: Device) -> bytes:
    """Return a key that is equal for devices that differ in name only."""
    return _encode(replace(device, name=""))


class Devices:
    """The claims, slices and classes that a scheduler knows. Slices include the taints of DeviceTaintRules.

    ``consumer_noun`` is how the version calls pods in messages, ``keeps_alternative`` whether it takes all devices of a
    request for one alternative.
    """

    def __init__(self, release: Release = DEFAULT_RELEASE) -> None:
        self._backs_resources = release.enabled(Gate.DRA_EXTENDED_RESOURCES)
        self.consumer_noun = "Pod" if release.has(Behavior.CLAIM_OWNERS_CAPITALIZED) else "pod"
        self.keeps_alternative = release.has(Behavior.ALTERNATIVE_KEPT_FOR_ALL)
        self.shares_matches = not release.has(Behavior.ALTERNATIVES_MATCHED_APART)
        self.skips_incomplete_pools = release.has(Behavior.INCOMPLETE_POOLS_SKIPPED)
        self.claim_cache = ClaimCache(self._pool_changed)
        self.claims = self.claim_cache.claims
        self.in_flight = self.claim_cache.in_flight
        self.allocated = self.claim_cache.allocated
        self.classes: dict[str, DeviceClass] = {}
        self.slices: dict[str, ResourceSlice] = {}
        self.backed: dict[str, DeviceClass] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self.written: dict[str, ResourceSlice] = {}
        """The slices without the taints of rules."""
        self._on_node: dict[str, dict[str, None]] = {}
        self._shared: dict[str, None] = {}
        self._in_pool: dict[PoolID, dict[str, None]] = {}
        self._offers: dict[str, bytes] = {}

    def find(self, item: DeviceObject) -> DeviceObject | None:
        """Return the known version of an object; None for a new one."""
        tables: dict[type, Mapping[str, DeviceObject]] = {
            ResourceClaim: self.claims,
            ResourceSlice: self.written,
            DeviceClass: self.classes,
            DeviceTaintRule: self._rules,
        }
        return tables[type(item)].get(item.key)

    def put(self, item: DeviceObject) -> bool:
        """Add or replace an object; return whether the extended resources provided by classes changed."""
        match item:
            case ResourceClaim():
                self.claim_cache.observe(item)
            case ResourceSlice(spec=spec):
                key = item.key
                self._remove_slice(key)
                self.written[key] = item
                self.slices[key] = tainted(item, self._rules)
                if spec.node_name and not spec.shared_counters:
                    self._on_node.setdefault(spec.node_name, {})[key] = None
                    self._offers.pop(spec.node_name, None)
                else:
                    self._shared[key] = None
                self._in_pool.setdefault(pool_of(item), {})[key] = None
                self._pool_changed(pool_of(item))
            case DeviceTaintRule():
                self._rules[item.key] = item
                self._update_taints()
            case DeviceClass():
                self.classes[item.key] = item
                return self._update_backed()
        return False

    def remove(self, item: DeviceObject) -> bool:
        """Remove an object; return whether the extended resources provided by classes changed."""
        match item:
            case ResourceClaim():
                self.claim_cache.remove(item)
            case ResourceSlice():
                self._remove_slice(item.key)
            case DeviceTaintRule():
                self._rules.pop(item.key, None)
                self._update_taints()
            case DeviceClass():
                self.classes.pop(item.key, None)
                return self._update_backed()
        return False

    def on_node(self, name: str) -> Iterator[ResourceSlice]:
        """Return the slices whose devices only this node can use, by name."""
        return (self.slices[key] for key in sorted(self._on_node.get(name, ())))

    @property
    def shared(self) -> Iterator[ResourceSlice]:
        """Return the slices that several nodes may use, and those with counters, by name."""
        return (self.slices[key] for key in sorted(self._shared))

    def in_pool(self, pool: PoolID) -> Iterator[ResourceSlice]:
        """Return all slices of a pool, of every generation, by name."""
        return (self.slices[key] for key in sorted(self._in_pool.get(pool, ())))

    def offer(self, node: str) -> bytes:
        """Return a digest of a node's devices and their use, equal for nodes on which any claim has the same result.

        If devices are shared between nodes, every node has its own.
        """
        if self._shared:
            return node.encode()
        offer = self._offers.get(node)
        if offer is None:
            offer = self._offers[node] = self._compute_offer(node)
        return offer

    def _remove_slice(self, key: str) -> None:
        item = self.written.pop(key, None)
        if item is None:
            return
        del self.slices[key]
        self._shared.pop(key, None)
        discard(self._on_node, item.spec.node_name, key)
        discard(self._in_pool, pool_of(item), key)
        self._offers.pop(item.spec.node_name, None)
        self._pool_changed(pool_of(item))

    def _update_taints(self) -> None:
        for key, item in self.written.items():
            self.slices[key] = tainted(item, self._rules)
        self._offers.clear()

    def _pool_changed(self, pool: PoolID) -> None:
        for key in self._in_pool.get(pool, ()):
            self._offers.pop(self.written[key].spec.node_name, None)

    def _compute_offer(self, node: str) -> bytes:
        slices = sorted(self.on_node(node), key=lambda slice_: (*pool_of(slice_), slice_.key))
        if not slices:
            return NOTHING_OFFERED
        digest = blake2b(digest_size=16)
        before: PoolID | None = None
        for slice_ in slices:
            pool = pool_of(slice_)
            if any(self.written[key].spec.node_name != node for key in self._in_pool[pool]):
                return node.encode()
            spec = slice_.spec
            digest.update(_encode((spec.driver, pool == before, spec.pool.generation, spec.pool.resource_slice_count)))
            digest.update(_encode([(device, self.allocated.state((*pool, device.name))) for device in spec.devices]))
            before = pool
        return digest.digest()

    def _update_backed(self) -> bool:
        """Recompute which class provides each extended resource; return whether the set of resources changed.

        If several classes provide the same, the newest one wins, then the first by name.
        """
        if not self._backs_resources:
            return False
        before, self.backed = self.backed, {}
        by_age = sorted(self.classes.values(), key=lambda device_class: device_class.key, reverse=True)
        for device_class in sorted(by_age, key=lambda device_class: device_class.metadata.creation_timestamp or ""):
            if device_class.spec.extended_resource_name:
                self.backed[device_class.spec.extended_resource_name] = device_class
        self.backed.update(
            (f"{DEVICE_CLASS_PREFIX}{name}", device_class) for name, device_class in self.classes.items()
        )
        return self.backed.keys() != before.keys()


def tainted(item: ResourceSlice, rules: Mapping[str, DeviceTaintRule]) -> ResourceSlice:
    """Return the slice with the taints of the rules that select its devices, in the order of the rules' names."""
    # For each rule that selects devices of the slice, the name of the only one that it selects; None for all.
    found: list[tuple[str | None, DeviceTaint]] = []
    for _, rule in sorted(rules.items()):
        chosen = rule.spec.device_selector or DeviceTaintSelector()
        if chosen.driver in (None, item.spec.driver) and chosen.pool in (None, item.spec.pool.name):
            found.append((chosen.device, rule.spec.taint))
    if not found:
        return item
    devices = []
    for device in item.spec.devices:
        added = tuple(taint for name, taint in found if name in (None, device.name))
        devices.append(replace(device, taints=device.taints + added) if added else device)
    return replace(item, spec=replace(item.spec, devices=tuple(devices)))


class ClaimCache:
    """The claims that a scheduler knows, and the devices that they hold.

    ``claims`` are by key as last observed or as the API server last answered, whichever is newer. ``in_flight`` are
    claims whose allocation is being written, with it, by uid; a claim that does not exist yet is under the uid of its
    pod. Their devices count as taken until the claim is observed or confirmed with devices, or is known to have none.
    """

    def __init__(self, pool_changed: Callable[[PoolID], None]) -> None:
        """``pool_changed`` is called with each pool whose free devices changed."""
        self.claims: dict[str, ResourceClaim] = {}
        self.in_flight: dict[str, ResourceClaim] = {}
        self.allocated = DevicesInUse()
        self._pool_changed = pool_changed
        self._made_for: dict[str, dict[str, None]] = {}
        # The uids of claims known from an answer and not observed since.
        self.unobserved: dict[str, None] = {}
        # The newest resource version of any observed claim.
        self._newest = ""
        # In-flight claims for which it is unknown whether they were written; and written ones whose answer is missing.
        self.uncertain: set[str] = set()
        self._unanswered: set[str] = set()
        # By pod uid, the uids of claims that it was removed from; older observations may still arrive.
        self._unreserved: dict[str, set[str]] = {}

    def made_for(self, pod_uid: str) -> ResourceClaim | None:
        """Return the claim that a scheduler created for a pod's extended resources; None without one."""
        keys = self._made_for.get(pod_uid)
        return self.claims[min(keys)] if keys else None

    def is_outdated(self, claim: ResourceClaim) -> bool:
        """Return whether an observed claim is older than the version known from an answer."""
        known = self.claims.get(claim.key)
        return (
            known is not None
            and known.metadata.uid in self.unobserved
            and is_older(claim.metadata.resource_version, known.metadata.resource_version)
        )

    def observe(self, claim: ResourceClaim) -> None:
        """Record an added or changed claim."""
        if not self.is_outdated(claim):
            self._put(claim)
        self._pass(claim.metadata.resource_version)

    def remove(self, claim: ResourceClaim) -> None:
        """Record the deletion of a claim."""
        uid = claim.metadata.uid
        known = self.claims.get(claim.key)
        # A newer claim of the same name may be known from an answer.
        if known is not None and (known.metadata.uid == uid or known.metadata.uid not in self.unobserved):
            self._forget(claim.key)
        self.end(uid)
        self._pass(claim.metadata.resource_version)

    def assume(self, claim: ResourceClaim) -> None:
        """Count an allocation that will be written; ``claim`` includes it."""
        uid = claim.metadata.uid
        if uid in self.uncertain:
            raise AssertionError(f"claim {claim.key} may have devices already")
        self.end(uid)
        self.in_flight[uid] = claim
        self._count(claim, 1)

    def apply_answer(self, claim: ResourceClaim) -> bool:
        """Record the claim that the API server returned for a write; return whether it is newer than the known one.

        An answer may arrive after later states, or the deletion, of the claim were observed. For a new claim that is
        decided by the newest observed version of any claim, since watches deliver a kind in the order of versions.
        """
        known, version = self.claims.get(claim.key), claim.metadata.resource_version
        if known is None:
            is_news = claim.for_extended_resources and is_older(self._newest, version)
        else:
            is_same = known.metadata.uid == claim.metadata.uid
            is_news = is_same and is_older(known.metadata.resource_version, version)
        if is_news:
            self._put(claim)
            self.unobserved[claim.metadata.uid] = None
        return is_news

    def end(self, uid: str) -> ResourceClaim | None:
        """Stop counting an in-flight allocation, which is recorded or was not written; return it, None without one."""
        claim = self.in_flight.pop(uid, None)
        if claim is not None:
            self.uncertain.discard(uid)
            self._unanswered.discard(uid)
            self._count(claim, -1)
        return claim

    def expect(self, uid: str) -> None:
        """Count a written allocation whose answer is missing until the claim is observed."""
        if uid in self.in_flight:
            self._unanswered.add(uid)

    def release(self, uid: str) -> None:
        """Stop counting an in-flight allocation unless it may have been written."""
        if uid not in self.uncertain:
            self.end(uid)

    def mark_uncertain(self, uid: str) -> None:
        """Count an abandoned allocation that may have been written until `settle` or until the claim is observed."""
        if uid in self.in_flight:
            self.uncertain.add(uid)

    def settle(self, uid: str) -> ResourceClaim | None:
        """Stop counting an abandoned allocation whose outcome is now known; return it, None if it was not counted."""
        return self.end(uid) if uid in self.uncertain else None

    def unreserve(self, uid: str, pod_uid: str) -> None:
        """Record that a pod was removed from a claim's reservations, whatever older observations show."""
        self._unreserved.setdefault(pod_uid, set()).add(uid)

    def on_reserved(self, uid: str, pod_uid: str) -> None:
        """Record that a claim was reserved for a pod."""
        self._unreserved.get(pod_uid, set()).discard(uid)

    def is_reserved_for(self, claim: ResourceClaim, pod_uid: str) -> bool:
        """Return whether the claim is certainly reserved for the pod."""
        return claim.is_reserved_for(pod_uid) and claim.metadata.uid not in self._unreserved.get(pod_uid, ())

    def forget_unobserved(self, key: str, uid: str) -> ResourceClaim | None:
        """Remove a deleted claim that was never observed, and return it; None if its deletion will be observed."""
        claim = self.claims.get(key)
        if claim is None or claim.metadata.uid != uid or uid not in self.unobserved:
            return None
        self._forget(key)
        return claim

    def may_track(self, pod_uid: str) -> bool:
        """Return whether anything is or was in flight for a pod."""
        return pod_uid in self._made_for or len(self.in_flight) > 0 or len(self._unreserved) > 0

    def forget_pod(self, uid: str) -> None:
        """Remove what is kept for a pod that was deleted or will not be bound."""
        self.release(uid)
        self._unreserved.pop(uid, None)

    def unobserved_of(self, pod_uid: str) -> list[ResourceClaim]:
        """Return the claims created for a pod that are known from an answer alone, by name."""
        made = (self.claims[key] for key in sorted(self._made_for.get(pod_uid, ())))
        return [claim for claim in made if claim.metadata.uid in self.unobserved]

    def _put(self, claim: ResourceClaim) -> None:
        self._forget(claim.key)
        self.claims[claim.key] = claim
        self._count(claim, 1)
        if claim.is_allocated:
            self.end(claim.metadata.uid)
        owner = claim.metadata.controller
        if claim.for_extended_resources and owner is not None:
            self._made_for.setdefault(owner.uid, {})[claim.key] = None
            # The observed claim may be an earlier one for the pod that was abandoned; the answer shows which it is.
            made = self.in_flight.get(owner.uid) if owner.uid in self._unanswered else None
            if made is not None and claim.is_allocated and claim.devices == made.devices:
                self.end(owner.uid)

    def _forget(self, key: str) -> None:
        claim = self.claims.pop(key, None)
        if claim is None:
            return
        self.unobserved.pop(claim.metadata.uid, None)
        self._count(claim, -1)
        if (owner := claim.metadata.controller) is not None:
            discard(self._made_for, owner.uid, key)

    def _pass(self, version: str) -> None:
        """Advance the newest observed version."""
        if is_older(self._newest, version):
            self._newest = version

    def _count(self, claim: ResourceClaim, sign: int) -> None:
        allocation = claim.status.allocation
        if allocation is None:
            return
        self.allocated.count(allocation, sign)
        for pool in {(result.driver, result.pool) for result in allocation.devices.results}:
            self._pool_changed(pool)


DeviceID = tuple[str, str, str]
"""A device's driver, pool and name."""

PoolID = tuple[str, str]
"""A pool's driver and name."""


class DevicesInUse:
    """The devices that claims hold. Administrative access does not hold a device.

    ``dedicated`` and ``shared`` count the claims that hold a device alone or share it; ``capacity`` is the capacity
    that sharing claims consume, in nano units.
    """

    def __init__(self) -> None:
        self.dedicated: dict[DeviceID, int] = {}
        self.shared: dict[DeviceID, int] = {}
        self.capacity: dict[DeviceID, dict[str, int]] = {}

    def __contains__(self, device: DeviceID) -> bool:
        """Return whether a claim holds the device or a part of it."""
        return device in self.dedicated or device in self.shared

    def count(self, allocation: AllocationResult, sign: int) -> None:
        """Add (1) or remove (-1) the devices of an allocation."""
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = (result.driver, result.pool, result.device)
            if result.share_id is None:
                add_count(self.dedicated, device, sign)
                continue
            add_count(self.shared, device, sign)
            taken = self.capacity.setdefault(device, {})
            for name, amount in result.consumed_capacity.items():
                taken[name] = taken.get(name, 0) + sign * parse_quantity(amount)
            if device not in self.shared:
                del self.capacity[device]

    def state(self, device: DeviceID) -> tuple[object, ...]:
        """Return a comparable state of the device's use; () if unused."""
        if device not in self:
            return ()
        return device in self.dedicated, device in self.shared, sorted(self.capacity.get(device, {}).items())
