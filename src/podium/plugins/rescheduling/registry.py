"""The policies that come with Podium, by the names that a configuration knows them by."""

from __future__ import annotations

from collections.abc import Mapping

from podium.framework.rescheduling.policy_registry import PolicyFactory
from podium.plugins.rescheduling.move_to_underused_nodes import MoveToUnderusedNodes
from podium.plugins.rescheduling.repair_violations import RepairViolations
from podium.plugins.rescheduling.satisfy_preferences import SatisfyPreferences

IN_TREE: Mapping[str, PolicyFactory] = {
    "MoveToUnderusedNodes": MoveToUnderusedNodes,
    "RepairViolations": RepairViolations,
    "SatisfyPreferences": SatisfyPreferences,
}
