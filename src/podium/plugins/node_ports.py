"""NodePorts: two pods cannot hold the same host port of a node.

Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.cluster import Cluster
from podium.cluster.matchers import HoldsHostPort
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import FitsRow, PluginContext, Scope
from podium.framework.status import SKIP, SUCCESS, Status, unschedulable
from podium.framework.verdicts import Verdicts

_REFUSAL = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts:
    """Counts, on each node, the pods whose host ports conflict with this pod's."""

    name = "NodePorts"
    scope = Scope.ROW

    def __init__(self, context: PluginContext) -> None:
        self._cluster = context.cluster

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods without host ports."""
        return SUCCESS if pod.pod_class.host_ports else SKIP

    def never_filters(self, pod_class: PodClass) -> bool:
        """Those without host ports."""
        return not pod_class.host_ports

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Refuse nodes where some pod holds a conflicting port.

        kube-scheduler keeps the ports of a node as a set, not a count: of two pods that hold the same port, the first
        to leave frees it. Preemption is tried in that way here too.
        """
        taken = np.zeros(len(view), dtype=np.bool_)
        for wanted in pod.pod_class.host_ports:
            for held in self._cluster.classes.host_ports_like(wanted):
                if held.conflicts(wanted):
                    taken |= view.is_held(HoldsHostPort(held))
        return Verdicts.where(taken, _REFUSAL)

    def row_filter(self, pod_class: PodClass) -> FitsRow:
        """Whether no pod on a row holds a conflicting port, as a function."""
        return self._fits_row

    def _fits_row(self, pod: PodRecord, row: int) -> bool:
        cluster = self._cluster
        return not any(
            held.conflicts(wanted) and cluster.matcher(HoldsHostPort(held)).count.item(row)
            for wanted in pod.pod_class.host_ports
            for held in cluster.classes.host_ports_like(wanted)
        )

    def events_to_register(self) -> Sequence[EventToRegister]:
        """A node may come, or a pod that holds one of the ports may go."""
        return (
            EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE, _frees_a_port),
            EventToRegister(EventResource.NODE, ActionType.ADD),
        )


def _frees_a_port(pod: PodRecord, event: ClusterEvent) -> bool:
    held = event.old.pod_class.host_ports
    return any(port.conflicts(wanted) for port in held for wanted in pod.pod_class.host_ports)
