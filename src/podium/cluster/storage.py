"""Storage objects for the volume plugins."""

from __future__ import annotations

from podium.api.node import CSINode
from podium.api.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

StorageObject = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)


class Storage:
    """Volumes, claims, classes, drivers and attachments by key.

    ``attached_to`` has the attachments by node name. ``generation`` changes with every object except attachments, which
    drivers update often and only ``attachment_generation`` follows.
    """

    def __init__(self) -> None:
        self.volumes: dict[str, PersistentVolume] = {}
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self.classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.csi_drivers: dict[str, CSIDriver] = {}
        self.capacities: dict[str, CSIStorageCapacity] = {}
        self.attachments: dict[str, VolumeAttachment] = {}
        self.attached_to: dict[str, dict[str, VolumeAttachment]] = {}
        self.generation = 0
        self.attachment_generation = 0

    def find(self, item: StorageObject) -> StorageObject | None:
        """Return the known version of an object; None for a new one."""
        return self._table(item).get(item.key)

    def put(self, item: StorageObject) -> None:
        self._count_change(item)
        if isinstance(item, VolumeAttachment):
            self.attached_to.setdefault(item.spec.node_name, {})[item.key] = item
        self._table(item)[item.key] = item

    def remove(self, item: StorageObject) -> None:
        self._count_change(item)
        self._table(item).pop(item.key, None)

    def _count_change(self, item: StorageObject) -> None:
        """Advance the generation; an attachment is no longer among its node's."""
        if not isinstance(item, VolumeAttachment):
            self.generation += 1
            return
        self.attachment_generation += 1
        known = self.attachments.get(item.key)
        if known is not None:
            of_node = self.attached_to[known.spec.node_name]
            del of_node[item.key]
            if not of_node:
                del self.attached_to[known.spec.node_name]

    def _table(self, item: StorageObject) -> dict[str, StorageObject]:
        tables: dict[type, object] = {
            PersistentVolume: self.volumes,
            PersistentVolumeClaim: self.claims,
            StorageClass: self.classes,
            CSINode: self.csi_nodes,
            CSIDriver: self.csi_drivers,
            CSIStorageCapacity: self.capacities,
            VolumeAttachment: self.attachments,
        }
        return tables[type(item)]  # type: ignore[return-value]
