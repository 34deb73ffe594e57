"""The pods that evictions send to the front of the queue, and those that are there no more."""

from __future__ import annotations

from podium.cluster.replacements import Replacements
from podium.machines.scheduling.queue.queue import SchedulingQueue


class QueueFront:
    """Gives pods in the queue another place in order when what evictions left is another's.

    ``first`` are the pods, by uid, that the queue is to put first; they change in `settle` alone.

    Source: controlled-rescheduling.md, Rescheduler; kube-scheduler has nothing like it.
    """

    def __init__(self, replacements: Replacements) -> None:
        self.first: set[str] = set()
        self._replacements = replacements
        self._version = replacements.version

    def settle(self, queue: SchedulingQueue, now: int) -> None:
        """Bring the queue, which goes by ``first``, up to date."""
        if self._version == self._replacements.version:
            return
        self._version = self._replacements.version
        moved = sorted(self.first ^ self._replacements.first)
        self.first.symmetric_difference_update(moved)
        for uid in moved:
            queue.reorder(uid, now)
