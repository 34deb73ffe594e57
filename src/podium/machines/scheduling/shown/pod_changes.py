"""What an update changed of a pod, as far as scheduling goes.

Source: pkg/scheduler/framework/events.go (PodSchedulingPropertiesChange).
"""

from __future__ import annotations

from podium.cluster.pods import PodRecord
from podium.framework.events import ActionType

NOTHING, _OTHER = ActionType(0), ActionType.UPDATE_POD_OTHER


def pod_changes(old: PodRecord, new: PodRecord) -> ActionType:
    """The changes between two readings of one pod; `Action.UPDATE_POD_OTHER` if there is none that has a name.

    A scale-down is less of some resource than before. Gates count when the last of them goes.
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
