"""The storage objects that volume plugins read."""

from __future__ import annotations

from podium.api.node import CSINode
from podium.api.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

StorageObject = PersistentVolume | PersistentVolumeClaim | StorageClass | CSINode | CSIDriver | CSIStorageCapacity


class Storage:
    """Volumes, claims, classes and drivers by key. ``generation`` moves whenever one of them changes."""

    def __init__(self) -> None:
        self.volumes: dict[str, PersistentVolume] = {}
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self.classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.csi_drivers: dict[str, CSIDriver] = {}
        self.capacities: dict[str, CSIStorageCapacity] = {}
        self.generation = 0

    def find(self, item: StorageObject) -> StorageObject | None:
        """What is known of an object; None where it is new."""
        return self._table(item).get(item.key)

    def put(self, item: StorageObject) -> None:
        """Add or replace an object."""
        self._table(item)[item.key] = item
        self.generation += 1

    def remove(self, item: StorageObject) -> None:
        """Forget an object."""
        self._table(item).pop(item.key, None)
        self.generation += 1

    def _table(self, item: StorageObject) -> dict[str, StorageObject]:
        tables: dict[type, object] = {
            PersistentVolume: self.volumes,
            PersistentVolumeClaim: self.claims,
            StorageClass: self.classes,
            CSINode: self.csi_nodes,
            CSIDriver: self.csi_drivers,
            CSIStorageCapacity: self.capacities,
        }
        return tables[type(item)]  # type: ignore[return-value]
