"""Storage objects for the volume plugins."""

from __future__ import annotations

from typing import Any

from podium.api import storage
from podium.api.node import CSINode
from podium.cluster.arrays import discard

StorageObject = (
    storage.PersistentVolume
    | storage.PersistentVolumeClaim
    | storage.StorageClass
    | CSINode
    | storage.CSIDriver
    | storage.CSIStorageCapacity
    | storage.VolumeAttachment
)


class Storage:
    """Volumes, claims, classes, drivers and attachments by key.

    ``attached_to`` has the attachments by node name. ``generation`` changes with every object except attachments, which
    drivers update often and only ``attachment_generation`` follows.
    """

    def __init__(self) -> None:
        self.volumes: dict[str, storage.PersistentVolume] = {}
        self.claims: dict[str, storage.PersistentVolumeClaim] = {}
        self.classes: dict[str, storage.StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.csi_drivers: dict[str, storage.CSIDriver] = {}
        self.capacities: dict[str, storage.CSIStorageCapacity] = {}
        self.attachments: dict[str, storage.VolumeAttachment] = {}
        self.attached_to: dict[str, dict[str, storage.VolumeAttachment]] = {}
        self._tables: dict[type, dict[str, Any]] = {
            storage.PersistentVolume: self.volumes,
            storage.PersistentVolumeClaim: self.claims,
            storage.StorageClass: self.classes,
            CSINode: self.csi_nodes,
            storage.CSIDriver: self.csi_drivers,
            storage.CSIStorageCapacity: self.capacities,
            storage.VolumeAttachment: self.attachments,
        }
        self.generation = 0
        self.attachment_generation = 0

    def find(self, item: StorageObject) -> StorageObject | None:
        """Return the known version of an object; None for a new one."""
        return self._tables[type(item)].get(item.key)

    def put(self, item: StorageObject) -> None:
        self._count_change(item)
        if isinstance(item, storage.VolumeAttachment):
            self.attached_to.setdefault(item.spec.node_name, {})[item.key] = item
        self._tables[type(item)][item.key] = item

    def remove(self, item: StorageObject) -> None:
        self._count_change(item)
        self._tables[type(item)].pop(item.key, None)

    def _count_change(self, item: StorageObject) -> None:
        """Advance the generation; an attachment is no longer among its node's."""
        if not isinstance(item, storage.VolumeAttachment):
            self.generation += 1
            return
        self.attachment_generation += 1
        if (known := self.attachments.get(item.key)) is not None:
            discard(self.attached_to, known.spec.node_name, item.key)
