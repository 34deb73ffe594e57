"""NodeName: a pod that names its node fits no other.

Source: pkg/scheduler/framework/plugins/nodename/node_name.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.cluster import Cluster
from podium.cluster.nodes import NAME_FIELD
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.events import ActionType, EventResource, EventToRegister
from podium.framework.plugin import PluginContext, Scope
from podium.framework.status import SKIP, SUCCESS, Status, unresolvable
from podium.framework.verdicts import Verdicts

_REFUSAL = unresolvable("node(s) didn't match the requested node name")


class NodeName:
    """Compares `spec.nodeName` with the node. The node name is the pod's own, not its class's: nothing is kept."""

    name = "NodeName"
    scope = Scope.CLUSTER

    def __init__(self, context: PluginContext) -> None:
        pass

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods that name no node."""
        return SUCCESS if pod.node_name else SKIP

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Refuse every node but the named one."""
        wanted = np.array([value == pod.node_name for value in view.cluster.nodes.labels(NAME_FIELD).values])
        return Verdicts.where(~wanted[view.codes(NAME_FIELD)], _REFUSAL)

    def events_to_register(self) -> Sequence[EventToRegister]:
        """A node of that name may come."""
        return (EventToRegister(EventResource.NODE, ActionType.ADD),)
