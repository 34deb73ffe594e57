"""NodeUnschedulable: a cordoned node takes only pods that tolerate it.

Source: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster.pods import PodRecord
from podium.cluster.taints import UNSCHEDULABLE_TAINT, tolerated
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import PluginContext, Scope
from podium.framework.status import unresolvable
from podium.framework.verdicts import Verdicts

_REFUSAL = unresolvable("node(s) were unschedulable")


class NodeUnschedulable:
    """Looks at `spec.unschedulable` of the node."""

    name = "NodeUnschedulable"
    scope = Scope.NODE

    def __init__(self, context: PluginContext) -> None:
        pass

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Refuse cordoned nodes unless the pod tolerates the unschedulable taint."""
        cordoned = view.take(view.cluster.nodes.unschedulable)
        if not cordoned.any() or tolerated(pod.spec.tolerations, UNSCHEDULABLE_TAINT):
            return Verdicts.none(len(view))
        return Verdicts.where(cordoned, _REFUSAL)

    def events_to_register(self) -> Sequence[EventToRegister]:
        """A node may come or be uncordoned, or the pod may learn to tolerate."""
        return (
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, _is_schedulable),
            EventToRegister(EventResource.POD, ActionType.UPDATE_POD_TOLERATION),
        )


def _is_schedulable(pod: PodRecord, event: ClusterEvent) -> bool:
    return event.new is not None and not event.new.spec.unschedulable
