"""SchedulingGates: a pod with scheduling gates is not tried.

Source: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster.pods import PodRecord
from podium.framework.events import ActionType, EventResource, EventToRegister
from podium.framework.plugin import PluginContext
from podium.framework.status import SUCCESS, Status, unresolvable


class SchedulingGates:
    """Holds a pod out of the queue until its last gate is removed."""

    name = "SchedulingGates"

    def __init__(self, context: PluginContext) -> None:
        pass

    def pre_enqueue(self, pod: PodRecord) -> Status:
        """Refuse while a gate is left."""
        if not pod.gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.gates)}]")

    def events_to_register(self) -> Sequence[EventToRegister]:
        """Only the pod's own gates matter."""
        return (EventToRegister(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES),)
