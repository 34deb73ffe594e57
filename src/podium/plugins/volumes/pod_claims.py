"""The claims that a pod mounts, as the volume plugins look at them."""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.storage import PersistentVolume, PersistentVolumeClaim
from podium.api.volume_annotations import STORAGE_CLASS
from podium.cluster.pods import PodRecord
from podium.cluster.storage import Storage
from podium.framework.events import ClusterEvent

READ_WRITE_ONCE_POD = "ReadWriteOncePod"


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim by the name under which a pod's volume mounts it; ``claim`` is None where there is none.

    An ephemeral volume's claim is made for the pod, after it.
    """

    name: str
    is_ephemeral: bool
    claim: PersistentVolumeClaim | None


def pod_claims(pod: PodRecord, storage: Storage) -> list[PodClaim]:
    """The claims of the pod's volumes, in their order."""
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
    """What upstream's listers say of a claim that is not there."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_class(volume: PersistentVolume) -> str:
    """The storage class of a volume, or "" (component-helpers GetPersistentVolumeClass)."""
    return volume.metadata.annotations.get(STORAGE_CLASS, volume.spec.storage_class_name)


def concerns_own_claim(pod: PodRecord, event: ClusterEvent) -> bool:
    """A hint: the claim that came or changed is one that the pod mounts."""
    meta = event.new.metadata
    return bool(meta.namespace == pod.namespace and meta.name in pod.pod_class.claims)
