"""The events after which pods deserve another attempt: what happened, what plugins register, and their hints.

Source: staging/src/k8s.io/kube-scheduler/framework/types.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Any

import msgspec

from podium.cluster.pods import PodRecord


class EventResource(Enum):
    """The kinds of objects whose changes are distinguished."""

    # Each member is a single object that is looked up for every event; an Enum's own hash is that of its name.
    __hash__ = object.__hash__

    POD = "Pod"  # the pending pod itself
    ASSIGNED_POD = "AssignedPod"
    NODE = "Node"
    NAMESPACE = "Namespace"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    SERVICE = "Service"
    WORKLOAD = "Workload"
    # kube-scheduler wakes no pod when a budget changes; here some preemption settings require the budgets' consent.
    POD_DISRUPTION_BUDGET = "PodDisruptionBudget"
    WILDCARD = "*"


class ActionType(Flag):
    """The types of changes of an object."""

    __hash__ = object.__hash__

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()
    UPDATE_NODE_OTHER = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES = auto()
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = auto()
    UPDATE_POD_OTHER = auto()
    UPDATE_OTHER = auto()
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_NODE_OTHER
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
        | UPDATE_POD_OTHER
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


class ClusterEvent(msgspec.Struct, frozen=True):
    """An event that happened, or (in a registration) a set of possible events.

    For an event that happened, ``old`` and ``new`` are the object before and after: PodRecord for pods, the typed
    object for other kinds; None if there is none. ``label`` is the name under which the queue records it.
    """

    resource: EventResource
    action: ActionType
    old: Any = None
    new: Any = None
    label: str = ""

    def concerns(self, registered: ClusterEvent) -> bool:
        """Return whether this event is one of those that ``registered`` waits for."""
        if EventResource.WILDCARD in (registered.resource, self.resource):
            return True
        return self.resource is registered.resource and bool(self.action & registered.action)


QueueingHint = Callable[[PodRecord, ClusterEvent], bool]


@dataclass(frozen=True, slots=True)
class EventToRegister:
    """An event that may make a pod schedulable that this plugin rejected.

    ``hint`` returns whether to retry the pod; None retries always. A hint must be cheap and must not change anything.
    """

    resource: EventResource
    action: ActionType
    hint: QueueingHint | None = None

    def wakes(self, pod: PodRecord, event: ClusterEvent) -> bool:
        """Return whether ``event`` justifies another attempt at ``pod``."""
        if not event.concerns(ClusterEvent(self.resource, self.action)):
            return False
        return self.hint is None or EventResource.WILDCARD is event.resource or self.hint(pod, event)


EVERY_EVENT = (EventToRegister(EventResource.WILDCARD, ActionType.ALL),)
