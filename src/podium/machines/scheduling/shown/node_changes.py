"""What an update changed of a node, as far as scheduling goes.

Source: pkg/scheduler/framework/events.go (NodeSchedulingPropertiesChange).
"""

from __future__ import annotations

from podium.api.node import Node
from podium.framework.events import ActionType


def node_changes(old: Node, new: Node) -> ActionType:
    """The changes between two readings of one node; no flag at all where scheduling sees no difference."""
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
