"""The policies that come with Podium, by the names that a configuration knows them by."""

from __future__ import annotations

from collections.abc import Mapping

from podium.framework.rescheduling.policy_registry import PolicyFactory
from podium.plugins.rescheduling.consolidate import Consolidate
from podium.plugins.rescheduling.leave_poor_service import LeavePoorService
from podium.plugins.rescheduling.move_to_underused_nodes import MoveToUnderusedNodes
from podium.plugins.rescheduling.prepare_for_maintenance import PrepareForMaintenance
from podium.plugins.rescheduling.repair_violations import RepairViolations
from podium.plugins.rescheduling.replace_old_pods import ReplaceOldPods
from podium.plugins.rescheduling.satisfy_preferences import SatisfyPreferences
from podium.plugins.rescheduling.separate_interfering import SeparateInterfering
from podium.plugins.rescheduling.spread_duplicates import SpreadDuplicates

IN_TREE: Mapping[str, PolicyFactory] = {
    "Consolidate": Consolidate,
    "LeavePoorService": LeavePoorService,
    "MoveToUnderusedNodes": MoveToUnderusedNodes,
    "PrepareForMaintenance": PrepareForMaintenance,
    "RepairViolations": RepairViolations,
    "ReplaceOldPods": ReplaceOldPods,
    "SatisfyPreferences": SatisfyPreferences,
    "SeparateInterfering": SeparateInterfering,
    "SpreadDuplicates": SpreadDuplicates,
}
