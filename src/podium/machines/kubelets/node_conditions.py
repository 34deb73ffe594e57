"""What a kubelet says of its node.

Source: pkg/kubelet/kubelet_node_status.go.
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.node_health import condition_status
from podium.api.pod import PodCondition
from podium.machines.actions import Action, ReportStatus
from podium.machines.kubelets import kubelet_reports as reports
from podium.machines.kubelets.host import Hosts
from podium.machines.kubelets.node_memory import NodeMemory


class NodeConditions:
    """Tells the API the node's conditions, and what else nobody has said of it.

    ``actions`` is where reports go.
    """

    def __init__(self, memory: NodeMemory, actions: list[Action]) -> None:
        self._memory = memory
        self._actions = actions
        # By type, the condition that the API was told last; under "" all that nobody had said.
        self._told: dict[str, ReportStatus] = {}

    def register(self, hosts: Hosts, node: Node, raw: Raw, now: int) -> None:
        """Say of the node what nobody has said."""
        name, uid = node.metadata.name, node.metadata.uid
        hosts.show_node(uid, raw)
        conditions = reports.node_conditions(is_short=self._memory.is_short)
        missing = hosts.missing_of(name, uid, raw, conditions, now)
        if missing:
            self._tell(reports.registered(node, missing))

    def assert_known(self, node: Node) -> None:
        """Say how the node is, where the API shows that nobody knows."""
        for condition in reports.node_conditions(is_short=self._memory.is_short):
            if condition_status(node, condition.type) == "Unknown":
                self.report(node, condition)

    def report(self, node: Node, condition: PodCondition) -> None:
        """Tell the API one condition."""
        self._tell(reports.of_node(node, condition))

    def is_wanted(self, report: ReportStatus) -> bool:
        """Whether that is what the API should be told last."""
        return self._told.get(reports.reported(report)) is report

    def forget(self) -> None:
        """The machine has stopped, and nobody waits for what it said."""
        self._told.clear()

    def _tell(self, report: ReportStatus) -> None:
        """Tell the API, in place of what it was told of the same before."""
        self._told[reports.reported(report)] = report
        self._actions.append(report)
