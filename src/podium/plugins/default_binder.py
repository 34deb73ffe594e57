"""DefaultBinder: binds through the API.

Source: pkg/scheduler/framework/plugins/defaultbinder/default_binder.go.
"""

from __future__ import annotations

from podium.cluster.pods import PodRecord
from podium.framework.cycle_state import CycleState
from podium.framework.plugin import PluginContext
from podium.framework.status import SUCCESS, Status


class DefaultBinder:
    """Has the scheduler post an ordinary binding."""

    name = "DefaultBinder"

    def __init__(self, context: PluginContext) -> None:
        pass

    def bind(self, state: CycleState, pod: PodRecord, node_name: str) -> Status:
        """Success asks for the ordinary binding."""
        return SUCCESS
