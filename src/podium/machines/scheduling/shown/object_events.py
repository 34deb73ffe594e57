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
from podium.framework.events import Action, ClusterEvent, Resource

_RESOURCES: dict[type, Resource] = {
    Namespace: Resource.NAMESPACE,
    PersistentVolume: Resource.PERSISTENT_VOLUME,
    PersistentVolumeClaim: Resource.PERSISTENT_VOLUME_CLAIM,
    StorageClass: Resource.STORAGE_CLASS,
    CSINode: Resource.CSI_NODE,
    CSIDriver: Resource.CSI_DRIVER,
    CSIStorageCapacity: Resource.CSI_STORAGE_CAPACITY,
    ResourceClaim: Resource.RESOURCE_CLAIM,
    ResourceSlice: Resource.RESOURCE_SLICE,
    # A rule that comes, changes or goes is seen as a change of the slices that it taints.
    DeviceTaintRule: Resource.RESOURCE_SLICE,
    DeviceClass: Resource.DEVICE_CLASS,
    Service: Resource.SERVICE,
    ReplicationController: Resource.WORKLOAD,
    ReplicaSet: Resource.WORKLOAD,
    StatefulSet: Resource.WORKLOAD,
}


def object_event(old: Kubernetes | None, new: Kubernetes | None) -> ClusterEvent | None:
    """The event; None for kinds that make no pod schedulable. An object without an ``old`` may be new or changed."""
    item = new if new is not None else old
    resource = _RESOURCES.get(type(item))
    if resource is None:
        return None
    if isinstance(item, DeviceTaintRule):
        action = Action.UPDATE_OTHER
    elif new is None:
        action = Action.DELETE
    else:
        action = Action.UPDATE_OTHER if old is not None else Action.ADD | Action.UPDATE_OTHER
    return ClusterEvent(resource, action, old, new, f"{resource.value}{'Delete' if new is None else 'Change'}")
