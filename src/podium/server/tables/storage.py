"""How volumes, claims for them, their classes and drivers are shown (printPersistentVolume and so on)."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.server.tables.cells import (
    NONE,
    UNSET,
    access_modes,
    age,
    count,
    entries,
    name,
    text,
    texts,
    value,
)
from podium.server.tables.column import AGE, NAME, Cells, Column, Printer

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_MODE = Column("VolumeMode", "Whether the volume is a file system or a bare device.", priority=1)

_VOLUME_COLUMNS = (
    NAME,
    Column("Capacity", "How large the volume is."),
    Column("Access Modes", "How the volume can be mounted."),
    Column("Reclaim Policy", "What becomes of the volume when its claim is gone."),
    Column("Status", "Whether the volume is bound."),
    Column("Claim", "The claim that the volume is bound to."),
    Column("StorageClass", "The storage class of the volume."),
    Column("VolumeAttributesClass", "The class of the volume's attributes."),
    Column("Reason", "Why the volume is in that state."),
    AGE,
    _MODE,
)
_CLAIM_COLUMNS = (
    NAME,
    Column("Status", "Whether the claim is bound."),
    Column("Volume", "The volume that the claim is bound to."),
    Column("Capacity", "How large that volume is."),
    Column("Access Modes", "How that volume can be mounted."),
    Column("StorageClass", "The storage class that the claim asks for."),
    Column("VolumeAttributesClass", "The class of attributes that the claim asks for."),
    AGE,
    _MODE,
)
_CLASS_COLUMNS = (
    NAME,
    Column("Provisioner", "Who provisions volumes of the class."),
    Column("ReclaimPolicy", "What becomes of volumes of the class when their claims are gone."),
    Column("VolumeBindingMode", "When claims are bound to volumes of the class."),
    Column("AllowVolumeExpansion", "Whether claims of the class may grow."),
    AGE,
)
_ATTRIBUTES_COLUMNS = (NAME, Column("DriverName", "The driver that the attributes are for."), AGE)
_ATTACHMENT_COLUMNS = (
    NAME,
    Column("Attacher", "The driver that attaches the volume.", format="name"),
    Column("PV", "The volume."),
    Column("Node", "The node that the volume is attached to."),
    Column("Attached", "Whether the volume is attached.", "boolean"),
    AGE,
)
_DRIVER_COLUMNS = (
    NAME,
    Column("AttachRequired", "Whether volumes have to be attached.", "boolean"),
    Column("PodInfoOnMount", "Whether the driver is told of the pod.", "boolean"),
    Column("StorageCapacity", "Whether scheduling looks at the capacity that is left.", "boolean"),
    Column("TokenRequests", "For whom the driver gets tokens of the pod."),
    Column("RequiresRepublish", "Whether volumes are published again and again.", "boolean"),
    Column("Modes", "What kinds of volumes the driver has."),
    AGE,
)
_NODE_COLUMNS = (NAME, Column("Drivers", "How many drivers run on the node.", "integer"), AGE)
_CAPACITY_COLUMNS = (
    NAME,
    Column("StorageClassName", "The storage class that there is room for."),
    Column("Capacity", "How much room there is."),
)


def _volume(raw: Raw, now: int) -> Cells:
    spec = value(raw, "spec")
    claim = value(spec, "claimRef")
    return (
        name(raw),
        text(spec, "capacity", "storage", default="0"),
        access_modes(texts(spec, "accessModes")),
        text(spec, "persistentVolumeReclaimPolicy"),
        _phase(raw),
        "" if claim is None else f"{text(claim, 'namespace')}/{text(claim, 'name')}",
        _class_of(raw),
        text(spec, "volumeAttributesClassName", default=UNSET),
        text(raw, "status", "reason"),
        age(raw, now),
        text(spec, "volumeMode", default=UNSET),
    )


def _claim(raw: Raw, now: int) -> Cells:
    spec, status = value(raw, "spec"), value(raw, "status")
    is_bound = bool(text(spec, "volumeName"))
    return (
        name(raw),
        _phase(raw),
        text(spec, "volumeName"),
        text(status, "capacity", "storage", default="0") if is_bound else "",
        access_modes(texts(status, "accessModes")) if is_bound else "",
        _class_of(raw),
        text(spec, "volumeAttributesClassName", default=UNSET),
        age(raw, now),
        text(spec, "volumeMode", default=UNSET),
    )


def _phase(raw: Raw) -> str:
    return "Terminating" if value(raw, "metadata", "deletionTimestamp") else text(raw, "status", "phase")


def _class_of(raw: Raw) -> str:
    return text(raw, "metadata", "annotations", _CLASS_ANNOTATION) or text(raw, "spec", "storageClassName")


def _class(raw: Raw, now: int) -> Cells:
    annotations = value(raw, "metadata", "annotations")
    is_default = any(text(annotations, annotation) == "true" for annotation in _DEFAULT_ANNOTATIONS)
    return (
        f"{name(raw)} (default)" if is_default else name(raw),
        text(raw, "provisioner"),
        text(raw, "reclaimPolicy", default="Delete"),
        text(raw, "volumeBindingMode", default="Immediate"),
        value(raw, "allowVolumeExpansion") is True,
        age(raw, now),
    )


def _attributes(raw: Raw, now: int) -> Cells:
    return name(raw), text(raw, "driverName"), age(raw, now)


def _attachment(raw: Raw, now: int) -> Cells:
    spec = value(raw, "spec")
    return (
        name(raw),
        text(spec, "attacher"),
        text(spec, "source", "persistentVolumeName"),
        text(spec, "nodeName"),
        value(raw, "status", "attached") is True,
        age(raw, now),
    )


def _driver(raw: Raw, now: int) -> Cells:
    spec = value(raw, "spec")
    audiences = [text(request, "audience") for request in entries(spec, "tokenRequests")]
    return (
        name(raw),
        value(spec, "attachRequired") is not False,
        value(spec, "podInfoOnMount") is True,
        value(spec, "storageCapacity") is True,
        UNSET if value(spec, "tokenRequests") is None else ",".join(audiences),
        value(spec, "requiresRepublish") is True,
        ",".join(texts(spec, "volumeLifecycleModes")) or NONE,
        age(raw, now),
    )


def _node(raw: Raw, now: int) -> Cells:
    return name(raw), count(raw, "spec", "drivers"), age(raw, now)


def _capacity(raw: Raw, now: int) -> Cells:
    return name(raw), text(raw, "storageClassName"), text(raw, "capacity", default=UNSET)


PRINTERS = {
    ("", "PersistentVolume"): Printer(_VOLUME_COLUMNS, _volume),
    ("", "PersistentVolumeClaim"): Printer(_CLAIM_COLUMNS, _claim),
    ("storage.k8s.io", "CSIDriver"): Printer(_DRIVER_COLUMNS, _driver),
    ("storage.k8s.io", "CSINode"): Printer(_NODE_COLUMNS, _node),
    ("storage.k8s.io", "CSIStorageCapacity"): Printer(_CAPACITY_COLUMNS, _capacity),
    ("storage.k8s.io", "StorageClass"): Printer(_CLASS_COLUMNS, _class),
    ("storage.k8s.io", "VolumeAttachment"): Printer(_ATTACHMENT_COLUMNS, _attachment),
    ("storage.k8s.io", "VolumeAttributesClass"): Printer(_ATTRIBUTES_COLUMNS, _attributes),
}
