"""Claims of pods, and the volumes that can serve unbound ones.

Source: FindMatchingVolume of staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go; binder.go and the
assume caches of pkg/scheduler/framework/plugins/volumebinding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct

from podium.api.quantity import parse_quantity, whole_value
from podium.api.selectors import (
    EVERYTHING,
    NodeSelector,
    NodeTerm,
    Requirement,
    compile_label_selector,
    compile_node_selector,
)
from podium.api.storage import (
    NO_PROVISIONER,
    SELECTED_NODE,
    STORAGE_CLASS,
    ClaimReference,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.cluster.storage import Storage
from podium.cluster.view import View, matching_rows
from podium.framework.events import ClusterEvent
from podium.framework.plugin import ClaimBinding

READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class PodClaim(Struct, frozen=True):
    """A claim that a pod's volume mounts, or that is made for its ephemeral one; ``claim`` is None if there is none."""

    name: str
    is_ephemeral: bool
    claim: PersistentVolumeClaim | None


def pod_claims(pod: PodRecord, storage: Storage) -> list[PodClaim]:
    """Return the claims of the pod's volumes, in order."""
    mounting = [
        volume
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None
    ]
    return [
        PodClaim(name, pod_claim.persistent_volume_claim is None, storage.claims.get(f"{pod.namespace}/{name}"))
        for pod_claim, name in zip(mounting, pod.pod_class.claims, strict=True)
    ]


def claim_not_found(name: str) -> str:
    """Return the message of upstream's listers about a missing claim."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_class(volume: PersistentVolume) -> str:
    """Return a volume's storage class, or "" (component-helpers GetPersistentVolumeClass)."""
    return volume.metadata.annotations.get(STORAGE_CLASS, volume.spec.storage_class_name)


def concerns_own_claim(pod: PodRecord, event: ClusterEvent) -> bool:
    """Return whether the pod mounts the added or changed claim."""
    meta = event.new.metadata
    return bool(meta.namespace == pod.namespace and meta.name in pod.pod_class.claims)


class AssumedVolumes:
    """Decided bindings of volumes and claims that the API does not show yet.

    A decision counts until it is forgotten or the object changes.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._volumes: dict[str, tuple[PersistentVolume, ClaimReference]] = {}
        self._claims: dict[str, tuple[PersistentVolumeClaim, str]] = {}

    def claim_of(self, volume: PersistentVolume) -> ClaimReference | None:
        """Return the claim that the volume is, or will be, bound to or reserved for."""
        assumed = self._volumes.get(volume.metadata.name)
        return assumed[1] if assumed is not None and assumed[0] == volume else volume.spec.claim_ref

    def node_of(self, claim: PersistentVolumeClaim) -> str | None:
        """Return the node for which the claim's volume is, or will be, provisioned; None without one."""
        assumed = self._claims.get(claim.key)
        if assumed is not None and assumed[0] == claim:
            return assumed[1]
        return claim.metadata.annotations.get(SELECTED_NODE)

    def assume(self, binding: ClaimBinding) -> None:
        """Record a decided binding; those of objects that changed are dropped."""
        volumes, claims = self._storage.volumes, self._storage.claims
        self._volumes = {name: kept for name, kept in self._volumes.items() if volumes.get(name) == kept[0]}
        self._claims = {key: kept for key, kept in self._claims.items() if claims.get(key) == kept[0]}
        claim = claims[binding.claim]
        if binding.volume:
            meta = claim.metadata
            kept_for = ClaimReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)
            self._volumes[binding.volume] = volumes[binding.volume], kept_for
        else:
            self._claims[binding.claim] = claim, binding.node_name

    def forget(self, binding: ClaimBinding) -> None:
        if binding.volume:
            self._volumes.pop(binding.volume, None)
        else:
            self._claims.pop(binding.claim, None)


def volumes_for(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    claim_of: Callable[[PersistentVolume], ClaimReference | None],
) -> tuple[PersistentVolume, ...]:
    """Return the volumes that could serve an unbound claim, the smallest first, then by name.

    ``claim_of`` returns the claim for which a volume is reserved. Volumes reserved for this claim exclude all others.
    """
    wanted_class, selector = claim.class_name, EVERYTHING
    if claim.spec.selector is not None:
        selector = compile_label_selector(claim.spec.selector)
    kept: list[PersistentVolume] = []
    free: list[PersistentVolume] = []
    for volume in volumes:
        if volume_class(volume) != wanted_class or not _could_hold(volume, claim):
            continue
        if (owner := claim_of(volume)) is not None:
            if is_for(owner, claim):
                kept.append(volume)
        elif (
            volume.status.phase == "Available"
            and selector.matches(volume.metadata.labels)
            and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        ):
            free.append(volume)
    return tuple(sorted(kept or free, key=lambda volume: (_capacity(volume), volume.metadata.name)))


def _could_hold(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        _capacity(volume) >= claim.size
        and volume.spec.volume_mode == claim.spec.volume_mode
        and volume.spec.volume_attributes_class_name == claim.spec.volume_attributes_class_name
        and volume.metadata.deletion_timestamp is None
    )


def _capacity(volume: PersistentVolume) -> int:
    return parse_quantity(volume.spec.capacity.get("storage", 0))


def is_for(owner: ClaimReference, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume's reference means this claim; without a uid it means any claim of that name."""
    meta = claim.metadata
    return (owner.namespace, owner.name) == (meta.namespace, meta.name) and owner.uid in ("", meta.uid)


# Bits for what a node can lack.
AFFINITY, VOLUME_TO_BIND, SPACE, BOUND_VOLUME = 1, 2, 4, 8


class WaitingClaim(Struct, frozen=True):
    """A claim that is bound with its first pod.

    ``node_name`` is the node for which a volume is being provisioned, None before. ``candidates`` are the volumes that
    could serve it, the best first.
    """

    claim: PersistentVolumeClaim
    node_name: str | None
    candidates: tuple[PersistentVolume, ...]


class VolumeSearch:
    """The search for one pod's volumes on the rows of a view; ``lacking`` is ``[n]`` what a node lacks, as bits."""

    def __init__(self, view: View, storage: Storage) -> None:
        self._view = view
        self._storage = storage
        self._matching: dict[tuple[NodeTerm, ...] | None, Bools] = {}
        self._taken: dict[str, Bools] = {}
        self._chosen: list[tuple[WaitingClaim, Int64s]] = []
        self.lacking: Int64s = np.zeros(len(view), dtype=np.int64)

    def check_bound(self, claims: Sequence[PersistentVolumeClaim]) -> None:
        """Check the access to the volumes of bound claims; the first failing claim determines what is lacking."""
        undecided = np.ones(len(self._view), dtype=np.bool_)
        for claim in claims:
            volume = self._storage.volumes.get(claim.spec.volume_name)
            if volume is None:
                self.lacking[undecided] |= BOUND_VOLUME
                return
            reached = self._reach(volume)
            self.lacking[undecided & ~reached] |= AFFINITY
            undecided &= reached

    def find(self, waiting: Sequence[WaitingClaim]) -> None:
        """Choose a volume for each waiting claim, the smallest claims first, or provisioning.

        If provisioning has begun for some node, no other node is possible.
        """
        begun = [claim for claim in waiting if claim.node_name is not None]
        elsewhere = np.zeros(len(self._view), dtype=np.bool_)
        for claim in begun:
            elsewhere |= self._view.rows != self._view.cluster.nodes.row_of.get(claim.node_name or "", -1)
            self._chosen.append((claim, np.full(len(self._view), -1, dtype=np.int64)))
        undecided = [claim for claim in waiting if claim.node_name is None]
        for smallest in sorted(undecided, key=lambda each: each.claim.size):
            self._chosen.append((smallest, self._choose(smallest)))
        self.lacking[elsewhere] |= VOLUME_TO_BIND
        self._provision(~elsewhere)

    def bindings(self, position: int, node_name: str) -> list[ClaimBinding]:
        """Return the bindings of the waiting claims on a node: existing volumes first, then provisioned ones."""
        found = []
        for waiting, chosen in self._chosen:
            index, claim = int(chosen[position]), waiting.claim
            volume = waiting.candidates[index].metadata.name if index >= 0 else ""
            found.append(ClaimBinding(claim.key, claim.metadata.uid, volume, node_name))
        return sorted(found, key=lambda binding: not binding.volume)

    def usage(self) -> list[dict[str, tuple[int, int]]]:
        """Return for each node, by storage class, the requested storage and the capacity that it is taken from.

        These are existing volumes if the node would use any, else the capacities that drivers report.
        """
        usage: list[dict[str, tuple[int, int]]] = [{} for _ in range(len(self._view))]
        provisions = np.ones(len(self._view), dtype=np.bool_)
        for waiting, chosen in self._chosen:
            for position in np.flatnonzero(chosen >= 0):
                volume = waiting.candidates[chosen[position]]
                requested, capacity = usage[position].get(volume.spec.storage_class_name, (0, 0))
                total = requested + waiting.claim.size, capacity + _capacity(volume)
                usage[position][volume.spec.storage_class_name] = total
            provisions &= chosen < 0
        for waiting, _ in self._chosen:
            claim = waiting.claim
            without = provisions.copy()
            for reported in self._sufficient_capacities(claim, self._storage.classes[claim.class_name]) or ():
                found = self._rows(_topologies([reported])) & without
                without &= ~found
                size = 0 if reported.capacity is None else parse_quantity(reported.capacity)
                for position in np.flatnonzero(found):
                    requested, _ = usage[position].get(claim.class_name, (0, 0))
                    usage[position][claim.class_name] = requested + waiting.claim.size, size
        return usage

    def _choose(self, waiting: WaitingClaim) -> Int64s:
        """Return ``[n]`` the best accessible candidate that no other claim of the pod uses there; -1 for none."""
        chosen = np.full(len(self._view), -1, dtype=np.int64)
        open_rows = self._view.take(self._view.cluster.nodes.present).copy()
        for index, volume in enumerate(waiting.candidates):
            if not open_rows.any():
                break
            taking = open_rows & self._reach(volume)
            taken = self._taken.get(volume.metadata.name)
            if taken is not None:
                taking &= ~taken
            chosen[taking] = index
            open_rows &= ~taking
            self._taken[volume.metadata.name] = taking if taken is None else taken | taking
        return chosen

    def _provision(self, undecided: Bools) -> None:
        """Check provisioning for the claims without a volume; the first failing claim determines what is lacking."""
        for waiting, chosen in self._chosen:
            wanted = undecided & (chosen < 0)
            if not wanted.any():
                continue
            storage_class = self._storage.classes[waiting.claim.class_name]
            allowed = self._allowed(storage_class)
            # Those with enough capacity for the claim, as the driver reports; all if it does not.
            sufficient = self._sufficient_capacities(waiting.claim, storage_class)
            roomy = self._rows(None if sufficient is None else _topologies(sufficient))
            self.lacking[wanted & ~allowed] |= VOLUME_TO_BIND
            self.lacking[wanted & allowed & ~roomy] |= SPACE
            undecided = undecided & ((chosen >= 0) | (allowed & roomy))

    def _reach(self, volume: PersistentVolume) -> Bools:
        """Return ``[n]`` the nodes that the volume's node affinity allows."""
        affinity = volume.spec.node_affinity
        return self._rows(None if affinity is None or affinity.required is None else _label_terms(affinity.required))

    def _allowed(self, storage_class: StorageClass) -> Bools:
        """Return ``[n]`` the nodes for which the class provisions volumes."""
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return self._rows(())
        terms = tuple(
            NodeTerm(tuple(Requirement(each.key, "In", each.values) for each in term.match_label_expressions))
            for term in storage_class.allowed_topologies
        )
        return self._rows(terms or None)

    def _sufficient_capacities(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass
    ) -> list[CSIStorageCapacity] | None:
        """Return the reported capacities that suffice for a claim, by name; None if the driver reports none."""
        size = claim.spec.resources.requests.get("storage")
        driver = self._storage.csi_drivers.get(storage_class.provisioner)
        if size is None or driver is None or not driver.spec.storage_capacity:
            return None
        return [
            capacity
            for _, capacity in sorted(self._storage.capacities.items())
            if capacity.storage_class_name == storage_class.metadata.name
            and (limit := volume_limit(capacity)) is not None
            and limit >= whole_value(size)
        ]

    def _rows(self, terms: tuple[NodeTerm, ...] | None) -> Bools:
        """Return ``[n]`` the nodes that some of the terms match, from a cache; None stands for all nodes."""
        known = self._matching.get(terms)
        if known is None:
            all_rows = np.ones(len(self._view), dtype=np.bool_)
            known = self._matching[terms] = all_rows if terms is None else matching_rows(self._view, terms)
        return known


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the largest possible volume in bytes; None if unknown."""
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return None if limit is None else whole_value(limit)


@lru_cache(maxsize=65_536)
def _label_terms(selector: NodeSelector) -> tuple[NodeTerm, ...] | None:
    """Return the terms of a volume's node affinity; None if every node matches.

    Conditions on fields are ignored, since upstream compares only labels.
    """
    terms = compile_node_selector(selector)
    if any(term.fields and not term.labels for term in terms):
        return None
    return tuple(NodeTerm(term.labels) for term in terms)


def _topologies(capacities: Iterable[CSIStorageCapacity]) -> tuple[NodeTerm, ...] | None:
    """Return the nodes with access to some of the capacities; None for all.

    Local storage has a capacity for each node, distinguished by one label: these conditions are combined.
    """
    values: dict[str, list[str]] = {}
    terms: list[NodeTerm] = []
    for capacity in capacities:
        requirements = compile_label_selector(capacity.node_topology).requirements
        if not requirements:
            return None
        if len(requirements) == 1 and requirements[0].operator == "In":
            values.setdefault(requirements[0].key, []).extend(requirements[0].values)
        else:
            terms.append(NodeTerm(requirements))
    return (*terms, *(NodeTerm((Requirement(key, "In", tuple(found)),)) for key, found in values.items()))
