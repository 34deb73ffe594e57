"""Which volumes could serve a claim, wherever the pod goes, and which of them are spoken for already.

Source: FindMatchingVolume of staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go; the assume caches of
pkg/scheduler/framework/plugins/volumebinding.
"""

from __future__ import annotations

from podium.api.quantity import parse_quantity
from podium.api.selectors import EVERYTHING, compile_label_selector
from podium.api.storage import ClaimReference, PersistentVolume, PersistentVolumeClaim
from podium.api.volume_annotations import SELECTED_NODE
from podium.cluster.storage import Storage
from podium.framework.claims import ClaimBinding
from podium.plugins.volumes.pod_claims import volume_class


class AssumedBindings:
    """What was decided about volumes and claims and the API does not show yet.

    A decision about an object counts until it is forgotten, or the object changes or goes: then the API's word stands.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._volumes: dict[str, tuple[PersistentVolume, ClaimReference]] = {}
        self._claims: dict[str, tuple[PersistentVolumeClaim, str]] = {}

    def claim_of(self, volume: PersistentVolume) -> ClaimReference | None:
        """The claim that the volume is bound to or kept for, or is about to be."""
        assumed = self._volumes.get(volume.metadata.name)
        return assumed[1] if assumed is not None and assumed[0] == volume else volume.spec.claim_ref

    def node_of(self, claim: PersistentVolumeClaim) -> str | None:
        """The node for which the claim's volume is, or is about to be, provisioned; None when it is not."""
        assumed = self._claims.get(claim.key)
        if assumed is not None and assumed[0] == claim:
            return assumed[1]
        return claim.metadata.annotations.get(SELECTED_NODE)

    def assume(self, binding: ClaimBinding) -> None:
        """Count a binding as done."""
        self._drop_outdated()
        claim = self._storage.claims[binding.claim]
        if binding.volume:
            meta = claim.metadata
            kept_for = ClaimReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)
            self._volumes[binding.volume] = self._storage.volumes[binding.volume], kept_for
        else:
            self._claims[binding.claim] = claim, binding.node_name

    def forget(self, binding: ClaimBinding) -> None:
        """Count a binding as never made."""
        if binding.volume:
            self._volumes.pop(binding.volume, None)
        else:
            self._claims.pop(binding.claim, None)

    def _drop_outdated(self) -> None:
        volumes, claims = self._storage.volumes, self._storage.claims
        self._volumes = {name: kept for name, kept in self._volumes.items() if volumes.get(name) == kept[0]}
        self._claims = {key: kept for key, kept in self._claims.items() if claims.get(key) == kept[0]}


def claim_size(claim: PersistentVolumeClaim) -> int:
    """How much storage the claim asks for, in nano units."""
    return parse_quantity(claim.spec.resources.requests.get("storage", 0))


def candidates(
    claim: PersistentVolumeClaim, storage: Storage, assumed: AssumedBindings
) -> tuple[PersistentVolume, ...]:
    """The volumes that could serve an unbound claim on the nodes that reach them, the best (smallest) first.

    Where volumes are kept for the claim, no others will do. Ties go by name.
    """
    wanted_class, selector = claim.class_name, EVERYTHING
    if claim.spec.selector is not None:
        selector = compile_label_selector(claim.spec.selector)
    kept: list[PersistentVolume] = []
    free: list[PersistentVolume] = []
    for volume in storage.volumes.values():
        if volume_class(volume) != wanted_class or not _could_hold(volume, claim):
            continue
        owner = assumed.claim_of(volume)
        if owner is not None:
            if _is_for(owner, claim):
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
        _capacity(volume) >= claim_size(claim)
        and volume.spec.volume_mode == claim.spec.volume_mode
        and volume.spec.volume_attributes_class_name == claim.spec.volume_attributes_class_name
        and volume.metadata.deletion_timestamp is None
    )


def _capacity(volume: PersistentVolume) -> int:
    return parse_quantity(volume.spec.capacity.get("storage", 0))


def _is_for(owner: ClaimReference, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume's reference means this claim; without a uid it keeps the volume for any claim of the name."""
    meta = claim.metadata
    return (owner.namespace, owner.name) == (meta.namespace, meta.name) and owner.uid in ("", meta.uid)
