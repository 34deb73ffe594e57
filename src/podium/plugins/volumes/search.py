"""Where a pod's claims can be served: which nodes reach the bound volumes, and get volumes for the unbound claims.

Source: FindPodVolumes of pkg/scheduler/framework/plugins/volumebinding/binder.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from podium.api.quantity import whole_value
from podium.api.selection import NodeSelector
from podium.api.selectors import NodeTerm, Requirement, compile_label_selector, compile_node_selector
from podium.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from podium.api.volume_annotations import NO_PROVISIONER
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.node_selection import matching_rows
from podium.cluster.storage import Storage
from podium.cluster.view import View
from podium.framework.claims import ClaimBinding
from podium.plugins.volumes.matching import claim_size

# What a node can lack, as bits.
AFFINITY, VOLUME_TO_BIND, SPACE, BOUND_VOLUME = 1, 2, 4, 8


@dataclass(frozen=True, slots=True)
class WaitingClaim:
    """A claim that gets its volume with its first pod.

    ``node_name`` is the node for which a volume is being provisioned, None where nothing was begun. ``candidates`` are
    the volumes that could serve it, the best first.
    """

    claim: PersistentVolumeClaim
    node_name: str | None
    candidates: tuple[PersistentVolume, ...]


class VolumeSearch:
    """One pod's search on the rows of a view. ``lacking`` is ``[n]``: the bits of what a node lacks, 0 for nothing."""

    def __init__(self, view: View, storage: Storage) -> None:
        self._view = view
        self._storage = storage
        self._reached: dict[tuple[NodeTerm, ...], Bools] = {}
        self._taken: dict[str, Bools] = {}
        self._chosen: list[tuple[WaitingClaim, Int64s]] = []
        self.lacking: Int64s = np.zeros(len(view), dtype=np.int64)

    def check_bound(self, claims: Sequence[PersistentVolumeClaim]) -> None:
        """Look whether the nodes reach the volumes of bound claims; the first claim that fails says what is lacking."""
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
        """Choose a volume for each waiting claim, the smallest claims first, or have one provisioned.

        Where provisioning has begun for some node, no other will do.
        """
        begun = [claim for claim in waiting if claim.node_name is not None]
        elsewhere = np.zeros(len(self._view), dtype=np.bool_)
        for claim in begun:
            elsewhere |= self._view.rows != self._view.cluster.nodes.row_of.get(claim.node_name or "", -1)
            self._chosen.append((claim, np.full(len(self._view), -1, dtype=np.int64)))
        for smallest in sorted((claim for claim in waiting if claim.node_name is None), key=_size):
            self._chosen.append((smallest, self._choose(smallest)))
        self.lacking[elsewhere] |= VOLUME_TO_BIND
        self._provision(~elsewhere)

    def bindings(self, position: int, node_name: str) -> list[ClaimBinding]:
        """What has to be done about the waiting claims for a pod on a node: volumes to bind, then those to make."""
        bound, made = [], []
        for waiting, chosen in self._chosen:
            index, meta = int(chosen[position]), waiting.claim.metadata
            if index >= 0:
                bound.append(
                    ClaimBinding(waiting.claim.key, meta.uid, waiting.candidates[index].metadata.name, node_name)
                )
            else:
                made.append(ClaimBinding(waiting.claim.key, meta.uid, "", node_name))
        return bound + made

    def _choose(self, waiting: WaitingClaim) -> Int64s:
        """``[n]``: the best candidate that the node reaches and no other claim of the pod takes there; -1 for none."""
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
        """Look whether volumes can be made for the claims without one; the first that fails says what is lacking."""
        for waiting, chosen in self._chosen:
            wanted = undecided & (chosen < 0)
            if not wanted.any():
                continue
            storage_class = self._storage.classes[waiting.claim.class_name]
            allowed = self._allowed(storage_class)
            roomy = self._with_room(waiting.claim, storage_class)
            self.lacking[wanted & ~allowed] |= VOLUME_TO_BIND
            self.lacking[wanted & allowed & ~roomy] |= SPACE
            undecided = undecided & ((chosen >= 0) | (allowed & roomy))

    def _reach(self, volume: PersistentVolume) -> Bools:
        """``[n]``: the nodes that the volume's node affinity admits."""
        affinity = volume.spec.node_affinity
        terms = None if affinity is None or affinity.required is None else _label_terms(affinity.required)
        if terms is None:
            return np.ones(len(self._view), dtype=np.bool_)
        reached = self._reached.get(terms)
        if reached is None:
            reached = self._reached[terms] = matching_rows(self._view, terms)
        return reached

    def _allowed(self, storage_class: StorageClass) -> Bools:
        """``[n]``: the nodes for which the class provisions volumes."""
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return np.zeros(len(self._view), dtype=np.bool_)
        if not storage_class.allowed_topologies:
            return np.ones(len(self._view), dtype=np.bool_)
        terms = (
            NodeTerm(
                tuple(
                    Requirement(match_label_expression.key, "In", match_label_expression.values)
                    for match_label_expression in term.match_label_expressions
                )
            )
            for term in storage_class.allowed_topologies
        )
        return matching_rows(self._view, tuple(terms))

    def _with_room(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> Bools:
        """``[n]``: the nodes from which the driver reports room for the claim; all unless the driver reports at all."""
        size = claim.spec.resources.requests.get("storage")
        driver = self._storage.csi_drivers.get(storage_class.provisioner)
        if size is None or driver is None or not driver.spec.storage_capacity:
            return np.ones(len(self._view), dtype=np.bool_)
        sufficient = (
            capacity
            for capacity in self._storage.capacities.values()
            if capacity.storage_class_name == storage_class.metadata.name
            and (limit := volume_limit(capacity)) is not None
            and limit >= whole_value(size)
        )
        terms = _topologies(sufficient)
        return np.ones(len(self._view), dtype=np.bool_) if terms is None else matching_rows(self._view, terms)


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The largest volume that can still be made, in bytes; None where nothing is said."""
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return None if limit is None else whole_value(limit)


def _size(waiting: WaitingClaim) -> int:
    return claim_size(waiting.claim)


@lru_cache(maxsize=65_536)
def _label_terms(selector: NodeSelector) -> tuple[NodeTerm, ...] | None:
    """The terms of a volume's node affinity, of which any must match; None for one that every node meets.

    Conditions on fields are left out, as upstream compares the affinity with a node's labels alone.
    """
    terms = compile_node_selector(selector)
    if any(term.fields and not term.labels for term in terms):
        return None
    return tuple(NodeTerm(term.labels) for term in terms)


def _topologies(capacities: Iterable[CSIStorageCapacity]) -> tuple[NodeTerm, ...] | None:
    """The nodes that have access to some of the capacities; None for all.

    Local storage has a capacity for each node, told apart by one label: those conditions are put together in one.
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
