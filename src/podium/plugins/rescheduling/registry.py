"""The policies that come with Podium, by the names that a configuration knows them by."""

from __future__ import annotations

from collections.abc import Mapping

from podium.framework.rescheduling.policy_registry import PolicyFactory
from podium.plugins.rescheduling.move_to_underused_nodes import MoveToUnderusedNodes

IN_TREE: Mapping[str, PolicyFactory] = {
    "MoveToUnderusedNodes": MoveToUnderusedNodes,
}
