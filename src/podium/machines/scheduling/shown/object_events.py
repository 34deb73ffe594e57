"""The scheduling event that a change of an object is, for kinds other than pods and nodes.

Source: pkg/scheduler/eventhandlers.go.
"""

from __future__ import annotations

from podium.api.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from podium.api.meta import Kubernetes
from podium.api.node import CSINode, Namespace
from podium.api.resource_claims import ResourceClaim
from podium.api.storage import CSIDriver, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from podium.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from podium.framework.events import ActionType, ClusterEvent, EventResource

_RESOURCES: dict[type, EventResource] = {
    Namespace: EventResource.NAMESPACE,
    PersistentVolume: EventResource.PERSISTENT_VOLUME,
    PersistentVolumeClaim: EventResource.PERSISTENT_VOLUME_CLAIM,
    StorageClass: EventResource.STORAGE_CLASS,
    CSINode: EventResource.CSI_NODE,
    CSIDriver: EventResource.CSI_DRIVER,
    CSIStorageCapacity: EventResource.CSI_STORAGE_CAPACITY,
    ResourceClaim: EventResource.RESOURCE_CLAIM,
    ResourceSlice: EventResource.RESOURCE_SLICE,
    # A rule that comes, changes or goes is seen as a change of the slices that it taints.
    DeviceTaintRule: EventResource.RESOURCE_SLICE,
    DeviceClass: EventResource.DEVICE_CLASS,
    Service: EventResource.SERVICE,
    ReplicationController: EventResource.WORKLOAD,
    ReplicaSet: EventResource.WORKLOAD,
    StatefulSet: EventResource.WORKLOAD,
}


def object_event(old: Kubernetes | None, new: Kubernetes | None) -> ClusterEvent | None:
    """The event; None for kinds that make no pod schedulable. An object without an ``old`` may be new or changed."""
    item = new if new is not None else old
    resource = _RESOURCES.get(type(item))
    if resource is None:
        return None
    if isinstance(item, DeviceTaintRule):
        action = ActionType.UPDATE_OTHER
    elif new is None:
        action = ActionType.DELETE
    else:
        action = ActionType.UPDATE_OTHER if old is not None else ActionType.ADD | ActionType.UPDATE_OTHER
    return ClusterEvent(resource, action, old, new, f"{resource.value}{'Delete' if new is None else 'Change'}")
