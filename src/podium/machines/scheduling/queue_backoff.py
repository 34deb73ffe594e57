"""The pods that back off from a failed attempt.

Source: pkg/scheduler/backend/queue/backoff_queue.go.
"""

from __future__ import annotations

from podium.machines.scheduling.queue_heap import Item, PodHeap
from podium.machines.scheduling.queued_pod import QueuedPod, QueueSettings


class BackoffPods:
    """Pods by the end of their backoff; those that plugins rejected apart from those that met an error."""

    def __init__(self, settings: QueueSettings) -> None:
        self._settings = settings
        self._rejected = PodHeap()
        self._errors = PodHeap()

    def __len__(self) -> int:
        return len(self._rejected) + len(self._errors)

    def put(self, queued: QueuedPod, sort_item: Item) -> None:
        """Let a pod back off, or sort it anew. Of equal ends the smaller ``sort_item`` comes first."""
        heap = self._errors if queued.error_count else self._rejected
        heap.put((self._settings.backoff_end_ns(queued), *sort_item))

    def discard(self, uid: str) -> None:
        """Take a pod out, if it is there."""
        self._rejected.discard(uid)
        self._errors.discard(uid)

    @property
    def can_pop_early(self) -> bool:
        """Whether a rejected pod backs off."""
        return len(self._rejected) > 0

    def pop_early(self) -> str | None:
        """Take out the rejected pod whose backoff ends first and return its uid; None if there is none."""
        return self._rejected.pop()

    def take_ended(self, now: int) -> list[str]:
        """Take out the pods whose backoff has ended and return their uids, in order of the ends."""
        ended = []
        while (first := self._first()) is not None and first[0] <= now:
            uid: str = first[-1]
            self.discard(uid)
            ended.append(uid)
        return ended

    def next_deadline(self) -> int | None:
        """When the first backoff ends; None if no pod backs off."""
        first = self._first()
        return None if first is None else first[0]

    def uids(self) -> list[str]:
        """The pods by the end of their backoff, then as if they were active."""
        return [item[-1] for item in sorted(self._rejected.items() + self._errors.items())]

    def check(self, pods: dict[str, QueuedPod]) -> None:
        """Raise AssertionError if a pod backs off from what did not happen to it; ``pods`` is by uid."""
        self._rejected.check()
        self._errors.check()
        for uid in self.uids():
            if (uid in self._errors) is not (pods[uid].error_count > 0):
                raise AssertionError(f"pod {pods[uid].record.key} backs off as if its last attempt had ended otherwise")

    def _first(self) -> Item | None:
        rejected, error = self._rejected.first(), self._errors.first()
        if rejected is None or error is None:
            return error if rejected is None else rejected
        return min(rejected, error)
