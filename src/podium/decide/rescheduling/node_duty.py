"""Which nodes are about to go, or out of order: no place to move pods to, and nothing to rebalance.

"We assume that nodes that are intentionally under-utilized, e.g. because they are being drained, are marked
unschedulable": so a rescheduler does not fight who drains or empties them.

Source: controlled-rescheduling.md, Rescheduler; autoscaler cluster-autoscaler (utils/taints); karpenter
pkg/apis/v1/taints.go; pkg/apis/core well_known_taints.go.
"""

from __future__ import annotations

import numpy as np

from podium.api.node import Node
from podium.cluster.arrays import Bools
from podium.cluster.nodes import NodeColumns
from podium.cluster.taints import UNSCHEDULABLE_TAINT
from podium.decide.scaling.node_groups import REMOVAL_TAINT, STARTUP_TAINT

OFF_DUTY_TAINTS = {
    UNSCHEDULABLE_TAINT.key: "it is cordoned",
    REMOVAL_TAINT: "the autoscaler is removing it",
    "DeletionCandidateOfClusterAutoscaler": "the autoscaler is about to remove it",
    STARTUP_TAINT: "it has not started yet",
    "karpenter.sh/disrupted": "Karpenter is removing it",
    "karpenter.sh/disruption": "Karpenter is removing it",
    "node.kubernetes.io/not-ready": "it is not ready",
    "node.kubernetes.io/unreachable": "it cannot be reached",
    "node.kubernetes.io/out-of-service": "it is out of service",
    "node.cloudprovider.kubernetes.io/shutdown": "it is shut down",
    "node.cloudprovider.kubernetes.io/uninitialized": "it has not started yet",
}
"""Taints that say that a node is going, or does not work, and what they say. Of whatever effect."""


def off_duty(node: Node) -> str:
    """Why no pod should move to a node, and none be moved off it by a rescheduler; "" where neither holds."""
    if node.metadata.deletion_timestamp:
        return "it is being deleted"
    if node.spec.unschedulable:
        return OFF_DUTY_TAINTS[UNSCHEDULABLE_TAINT.key]
    if any(condition.type == "Ready" and condition.status != "True" for condition in node.status.conditions):
        return "it is not ready"
    return next((OFF_DUTY_TAINTS[taint.key] for taint in node.spec.taints if taint.key in OFF_DUTY_TAINTS), "")


class NodeDuty:
    """Why the nodes of a cluster are off duty, kept as their objects change."""

    def __init__(self, nodes: NodeColumns) -> None:
        self._nodes = nodes
        self._position = -1
        self._why: dict[int, str] = {}
        self._on_duty: Bools = np.empty(0, dtype=np.bool_)

    def why(self, row: int) -> str:
        """Why the node in a row is off duty; "" if it is not, or if there is none."""
        self._refresh()
        return self._why.get(row, "")

    def targets(self) -> Bools:
        """``[rows]``: whether pods may move to the node. Not to be written to."""
        self._refresh()
        return self._on_duty

    def _refresh(self) -> None:
        nodes = self._nodes
        log = nodes.node_changes
        if self._position == log.position and len(self._on_duty) == nodes.count:
            return
        changed = log.since(self._position) if self._position >= 0 and len(self._on_duty) == nodes.count else None
        self._position = log.position
        # Who holds the former answer gets to keep it.
        on_duty = np.ones(nodes.count, dtype=np.bool_) if changed is None else self._on_duty.copy()
        for row in range(nodes.count) if changed is None else changed.tolist():
            node = nodes.nodes[row]
            why = "" if node is None else off_duty(node)
            if why:
                self._why[row] = why
            else:
                self._why.pop(row, None)
            on_duty[row] = node is not None and not why
        on_duty.flags.writeable = False
        self._on_duty = on_duty
