"""What stands before the active queue: PreEnqueue, which may hold a pod out, and QueueSort, which gives its order.

Before that order come the pods that go first because of an eviction: QueueSort orders them among themselves.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (runPreEnqueuePlugins, moveToActiveQ).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from podium.cluster.pods import PodRecord
from podium.framework.errors import PluginError
from podium.framework.status import SUCCESS, Status, unresolvable
from podium.machines.scheduling.queue.queued_pod import QueuedPod

# A pod's place in the active queue, from the pod and its time of entry; the smallest goes first.
SortKey = Callable[[PodRecord, int], tuple[int, ...]]
PreEnqueue = Callable[[PodRecord], Status]

QUEUE_SORT = "QueueSort"


class QueueGate:
    """Lets pods in, with their place in order; notes on those that it holds who does, and why."""

    def __init__(self, queue_sort: Mapping[str, SortKey], pre_enqueue: PreEnqueue, first: Container[str]) -> None:
        self._queue_sort = queue_sort
        self._pre_enqueue = pre_enqueue
        self._first = first

    def knows(self, pod: PodRecord) -> bool:
        """Whether there is an order for pods of this scheduler name."""
        return pod.scheduler_name in self._queue_sort

    def holds(self, queued: QueuedPod) -> bool:
        """Whether a PreEnqueue plugin holds the pod, or QueueSort has no place for it."""
        status = self._pre_enqueue(queued.record)
        if status is not SUCCESS and not status.is_success:
            self._hold(queued, status)
            return True
        if not self.sorts(queued):
            return True
        if queued.gated_by:
            queued.gated_by = queued.message = ""
        return False

    def sorts(self, queued: QueuedPod) -> bool:
        """Ask QueueSort for the pod's place in order. A pod for which that fails has none, and is held out."""
        record = queued.record
        try:
            queued.sort_key = self._queue_sort[record.scheduler_name](record, queued.queued_ns)
        except PluginError as error:
            self._hold(queued, unresolvable(str(error)).by(QUEUE_SORT))
            return False
        queued.goes_first = record.uid in self._first
        return True

    def _hold(self, queued: QueuedPod, status: Status) -> None:
        if not status.plugin:
            raise ValueError(f"pod {queued.record.key} is gated by a plugin that does not name itself")
        queued.gated_by, queued.message = status.plugin, status.message
