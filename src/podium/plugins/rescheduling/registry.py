"""The policies that come with Podium, by the names that a configuration knows them by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Policy
from podium.plugins.rescheduling.move_to_underused_nodes import MoveToUnderusedNodes

IN_TREE: Mapping[str, Callable[[PluginContext], Policy]] = {
    "MoveToUnderusedNodes": MoveToUnderusedNodes,
}
