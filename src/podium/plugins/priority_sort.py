"""PrioritySort: the highest priority first, and of equals the one that entered the queue first.

Source: pkg/scheduler/framework/plugins/queuesort/priority_sort.go.
"""

from __future__ import annotations

from podium.cluster.pods import PodRecord
from podium.framework.plugin import PluginContext


class PrioritySort:
    """Orders the active queue."""

    name = "PrioritySort"

    def __init__(self, context: PluginContext) -> None:
        pass

    def sort_key(self, pod: PodRecord, queued_ns: int) -> tuple[int, ...]:
        """Falling priority, then time of entry."""
        return (-pod.priority, queued_ns)
