"""The scheduling properties that an update of a pod or node has changed.

Source: pkg/scheduler/framework/events.go (PodSchedulingPropertiesChange, NodeSchedulingPropertiesChange).
"""

from __future__ import annotations

from podium.api.node import Node
from podium.cluster.pods import PodRecord
from podium.framework.plugin import ActionType

NOTHING, _OTHER = ActionType(0), ActionType.UPDATE_POD_OTHER


def pod_changes(old: PodRecord, new: PodRecord) -> ActionType:
    """Return the changes between two states of a pod; `ActionType.UPDATE_POD_OTHER` if no other flag applies.

    A scale-down is a smaller request of any resource. Gates count when the last one is removed.
    """
    if old is new:
        return _OTHER
    changes = NOTHING
    if old.gates and not new.gates:
        changes |= ActionType.UPDATE_POD_SCHEDULING_GATES
    if old.made_claims != new.made_claims:
        changes |= ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    before, after = old.pod_class, new.pod_class
    if before is not after:
        if before.labels != after.labels:
            changes |= ActionType.UPDATE_POD_LABEL
        if any(after.requests.get(resource, 0) < amount for resource, amount in before.requests.items()):
            changes |= ActionType.UPDATE_POD_SCALE_DOWN
        if before.spec.tolerations != after.spec.tolerations:
            changes |= ActionType.UPDATE_POD_TOLERATION
    return _OTHER if changes is NOTHING else changes


def node_changes(old: Node, new: Node) -> ActionType:
    """Return the changes between two states of a node; no flag if scheduling does not depend on any."""
    changes = ActionType(0)
    if old.status.allocatable != new.status.allocatable or old.status.capacity != new.status.capacity:
        changes |= ActionType.UPDATE_NODE_ALLOCATABLE
    if old.metadata.labels != new.metadata.labels:
        changes |= ActionType.UPDATE_NODE_LABEL
    if old.spec != new.spec:
        changes |= ActionType.UPDATE_NODE_TAINT
    if old.status.declared_features != new.status.declared_features:
        changes |= ActionType.UPDATE_NODE_DECLARED_FEATURE
    if old.status.images != new.status.images:
        changes |= ActionType.UPDATE_NODE_OTHER
    return changes
