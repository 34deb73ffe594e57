"""Scores as people write them first: five lines, in the simple form."""

from __future__ import annotations

from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView
from podium.framework.cycle_state import CycleState
from podium.framework.plugin import Scope


class FewestPods:
    """Nodes with few pods first. It does not say what its answers depend on."""

    name = "FewestPods"

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int:
        """100 for an empty node."""
        return max(0, 100 - len(node.pods))


class FewestPodsByRow(FewestPods):
    """The same, and says so: an answer depends on the node and the pods on it."""

    scope = Scope.ROW
