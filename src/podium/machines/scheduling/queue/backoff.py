"""The pods that back off from a failed attempt.

Source: pkg/scheduler/backend/queue/backoff_queue.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.machines.scheduling.queue.heap import Item, PodHeap
from podium.machines.scheduling.queue.queued_pod import QueuedPod, QueueSettings


class BackoffPods:
    """Pods by the end of their backoff; those that may be tried before it ends apart from those that may not."""

    def __init__(self, settings: QueueSettings) -> None:
        self._settings = settings
        self._early = PodHeap()
        self._kept = PodHeap()

    def __len__(self) -> int:
        return len(self._early) + len(self._kept)

    def __iter__(self) -> Iterator[str]:
        """The uids, in no order."""
        yield from self._early
        yield from self._kept

    def put(self, queued: QueuedPod, sort_item: Item) -> int:
        """Let a pod back off, or sort it anew; returns when that ends. Of equal ends the smaller item comes first."""
        heap = self._kept if self._settings.must_back_off(queued) else self._early
        end_ns = self._settings.backoff_end_ns(queued)
        heap.put((end_ns, *sort_item))
        return end_ns

    def discard(self, uid: str) -> None:
        """Take a pod out, if it is there."""
        self._early.discard(uid)
        self._kept.discard(uid)

    @property
    def can_pop_early(self) -> bool:
        """Whether a pod backs off that may be tried before its backoff ends."""
        return bool(self._early.uids)

    def pop_early(self) -> str | None:
        """Of the pods that may be tried early take out the one whose backoff ends first; its uid, None without any."""
        return self._early.pop()

    def take_ended(self, now: int) -> list[str]:
        """Take out the pods whose backoff has ended and return their uids, in order of the ends."""
        ended = self._early.take_until(now) + self._kept.take_until(now)
        return [item[-1] for item in sorted(ended)]

    def next_deadline(self) -> int | None:
        """When the first backoff ends; None if no pod backs off."""
        first = self._first()
        return None if first is None else first[0]

    def uids(self) -> list[str]:
        """The pods by the end of their backoff, then as if they were active."""
        return [item[-1] for item in sorted(self._early.items() + self._kept.items())]

    def check(self, pods: dict[str, QueuedPod]) -> None:
        """Raise AssertionError if a pod backs off from what did not happen to it; ``pods`` is by uid."""
        self._early.check()
        self._kept.check()
        for uid in self.uids():
            if (uid in self._kept) is not self._settings.must_back_off(pods[uid]):
                raise AssertionError(f"pod {pods[uid].record.key} backs off as if its last attempt had ended otherwise")

    def _first(self) -> Item | None:
        early, kept = self._early.first(), self._kept.first()
        if early is None or kept is None:
            return kept if early is None else early
        return min(early, kept)
