"""Volumes, claims and storage classes (core/v1 and storage/v1), and the annotations of their controllers.

Source of the annotations: k8s.io/component-helpers/storage/volume/pv_helpers.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

import msgspec

from podium.api.meta import APIStruct, Kubernetes, ObjectMeta
from podium.api.pod import ISCSI, RBD, AWSElasticBlockStore, GCEPersistentDisk, ResourceList, ResourceRequirements
from podium.api.quantity import parse_quantity
from podium.api.selectors import LabelSelector, NodeSelector, TopologySelectorTerm
from podium.api.times import parse_time

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""The annotation of a claim that names the node for which its volume is to be provisioned."""

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
"""The finalizer of a claim that pods may use."""

VOLUME_PROTECTION = "kubernetes.io/pv-protection"
"""The finalizer of a volume that may be bound."""

CLASS_PROTECTION = "kubernetes.io/vac-protection"
"""The finalizer of a VolumeAttributesClass that volumes may have."""

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""The annotation of a claim that is bound to its volume, and the volume to it."""

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""The annotation of a claim or volume that a component bound, and not a user."""

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
"""The annotation of a volume that names the driver that provisioned it."""

STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
"""The annotation of a claim or volume that names its class, in place of the field."""

IS_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
"""The annotations of which either makes a StorageClass the default, with the value `true`."""

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""The annotation of a CSINode that lists the in-tree plugins that were migrated to CSI."""

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of classes with manually created volumes."""


class ClaimReference(APIStruct, frozen=True, kw_only=True):
    """The claim that a volume is bound to, or reserved for (without a uid)."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSIPersistentVolumeSource(APIStruct, frozen=True, kw_only=True):
    """A volume of a CSI driver."""

    driver: str
    volume_handle: str = ""


class VolumeNodeAffinity(APIStruct, frozen=True, kw_only=True):
    """The nodes that can access a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(APIStruct, frozen=True, kw_only=True):
    """The properties of a volume, and the nodes that can access it."""

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


class PersistentVolumeStatus(APIStruct, frozen=True, kw_only=True):
    """The phase: Available, Bound, Released or Failed."""

    phase: str = "Available"


class PersistentVolume(Kubernetes, frozen=True, kw_only=True):
    """A piece of storage (core/v1)."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimSpec(APIStruct, frozen=True, kw_only=True):
    """The storage that a claim requests. `storage_class_name` None means the default class, "" means none."""

    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str = ""
    selector: LabelSelector | None = None


class PersistentVolumeClaimStatus(APIStruct, frozen=True, kw_only=True):
    """The phase: Pending, Bound or Lost."""

    phase: str = "Pending"


class PersistentVolumeClaim(Kubernetes, frozen=True, kw_only=True):
    """A request for storage (core/v1)."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def class_name(self) -> str:
        """The storage class that it requests, or "" (component-helpers GetPersistentVolumeClaimClass)."""
        return self.metadata.annotations.get(STORAGE_CLASS, self.spec.storage_class_name or "")

    @property
    def size(self) -> int:
        """The requested storage in nano units."""
        return parse_quantity(self.spec.resources.requests.get("storage", 0))


class StorageClass(Kubernetes, frozen=True, kw_only=True):
    """The provisioning and binding of volumes of a class (storage/v1)."""

    provisioner: str = ""
    volume_binding_mode: Literal["Immediate", "WaitForFirstConsumer"] = "Immediate"
    reclaim_policy: str = "Delete"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    allow_volume_expansion: bool = False
    mount_options: tuple[str, ...] = ()

    @property
    def binds_late(self) -> bool:
        """Whether claims are bound with their first pod."""
        return self.volume_binding_mode == "WaitForFirstConsumer"


def default_class(claim: PersistentVolumeClaim, classes: Iterable[StorageClass]) -> str:
    """Return the default class for a claim that names none, not even the empty one; otherwise ""."""
    if claim.spec.storage_class_name is not None or STORAGE_CLASS in claim.metadata.annotations:
        return ""
    return marked_default((class_.metadata for class_ in classes), IS_DEFAULT_CLASS)


def marked_default(classes: Iterable[ObjectMeta], annotations: Collection[str]) -> str:
    """Return the class that an annotation marks as the default, or "".

    If there are several defaults, the newest is used, and of equally old ones the first by name
    (pkg/volume/util/storageclass.go, GetDefaultClass; plugin/pkg/admission/network/defaultingressclass).
    """
    marked = (meta for meta in classes if any(meta.annotations.get(name) == "true" for name in annotations))
    defaults = [(-parse_time(meta.creation_timestamp) if meta.creation_timestamp else 0, meta.name) for meta in marked]
    return min(defaults)[1] if defaults else ""


class CSIDriverSpec(APIStruct, frozen=True, kw_only=True):
    """The capabilities and requirements of a CSI driver."""

    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(Kubernetes, frozen=True, kw_only=True):
    """A CSI driver installed in the cluster (storage/v1)."""

    spec: CSIDriverSpec = CSIDriverSpec()


class VolumeAttachmentSource(APIStruct, frozen=True, kw_only=True):
    """The attached volume."""

    persistent_volume_name: str = ""


class VolumeAttachmentSpec(APIStruct, frozen=True, kw_only=True):
    """The driver that attaches a volume, and the node."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Kubernetes, frozen=True, kw_only=True):
    """A volume that is attached to a node, or about to be attached or detached (storage/v1)."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


class CSIStorageCapacity(Kubernetes, frozen=True, kw_only=True):
    """The capacity that a driver can still provision for a class in a topology (storage/v1)."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = msgspec.field(name="maximumVolumeSize", default=None)
