"""Volumes, claims and storage classes (core/v1 and storage/v1)."""

from __future__ import annotations

from typing import Literal

import msgspec

from podium.api.meta import Kubernetes, Narrow
from podium.api.pod import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    GCEPersistentDisk,
    ResourceList,
    ResourceRequirements,
)
from podium.api.selection import LabelSelector, NodeSelector, TopologySelectorTerm
from podium.api.volume_annotations import STORAGE_CLASS


class ClaimReference(Narrow, frozen=True, kw_only=True):
    """The claim that a volume is bound to, or kept for (without a uid)."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSIPersistentVolumeSource(Narrow, frozen=True, kw_only=True):
    """A volume of a CSI driver."""

    driver: str
    volume_handle: str = ""


class VolumeNodeAffinity(Narrow, frozen=True, kw_only=True):
    """The nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Narrow, frozen=True, kw_only=True):
    """What a volume is and where it can be reached."""

    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str = ""
    claim_ref: ClaimReference | None = None
    persistent_volume_reclaim_policy: str = "Retain"
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIPersistentVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    rbd: RBD | None = None
    iscsi: ISCSI | None = None


class PersistentVolumeStatus(Narrow, frozen=True, kw_only=True):
    """Available, Bound, Released or Failed."""

    phase: str = "Available"


class PersistentVolume(Kubernetes, frozen=True, kw_only=True):
    """A piece of storage (core/v1)."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimSpec(Narrow, frozen=True, kw_only=True):
    """What storage a claim asks for. `storage_class_name` None means the default class, "" means none."""

    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str = ""
    selector: LabelSelector | None = None


class PersistentVolumeClaimStatus(Narrow, frozen=True, kw_only=True):
    """Pending, Bound or Lost."""

    phase: str = "Pending"


class PersistentVolumeClaim(Kubernetes, frozen=True, kw_only=True):
    """A request for storage (core/v1)."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def class_name(self) -> str:
        """The storage class that it asks for, or "" (component-helpers GetPersistentVolumeClaimClass)."""
        return self.metadata.annotations.get(STORAGE_CLASS, self.spec.storage_class_name or "")


class StorageClass(Kubernetes, frozen=True, kw_only=True):
    """How volumes of a class are made and bound (storage/v1)."""

    provisioner: str = ""
    volume_binding_mode: Literal["Immediate", "WaitForFirstConsumer"] = "Immediate"
    reclaim_policy: str = "Delete"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class CSIDriverSpec(Narrow, frozen=True, kw_only=True):
    """How a CSI driver wants to be treated."""

    storage_capacity: bool = False


class CSIDriver(Kubernetes, frozen=True, kw_only=True):
    """A CSI driver installed in the cluster (storage/v1)."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Kubernetes, frozen=True, kw_only=True):
    """How much a driver can still provision of a class in a topology (storage/v1)."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = msgspec.field(name="maximumVolumeSize", default=None)
