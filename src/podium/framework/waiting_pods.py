"""Pods that a Permit plugin delays, for plugins to allow or reject.

Source: pkg/scheduler/framework/runtime/waiting_pods_map.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from podium.cluster.pods import PodRecord

_SLACK = 32


@dataclass(slots=True)
class WaitingPod:
    """A waiting pod. ``deadlines_ns`` maps each plugin that requested the wait to its timeout."""

    pod: PodRecord
    node_name: str
    deadlines_ns: dict[str, int] = field(default_factory=dict)
    rejected_by: str = ""
    message: str = ""
    on_settled: Callable[[str], None] | None = None

    @property
    def is_settled(self) -> bool:
        """Return whether no plugin delays the pod any longer, or it was rejected."""
        return bool(self.rejected_by) or not self.deadlines_ns

    def allow(self, plugin: str) -> None:
        """Record that ``plugin`` allows the pod; it continues when all plugins do."""
        self.deadlines_ns.pop(plugin, None)
        self._notify()

    def reject(self, plugin: str, message: str) -> None:
        """Reject the pod: it returns to the queue."""
        if not self.rejected_by:
            self.rejected_by, self.message = plugin, message
        self._notify()

    def _notify(self) -> None:
        if self.is_settled and self.on_settled is not None:
            self.on_settled(self.pod.uid)


class WaitingPods:
    """All waiting pods.

    Plugins change them at any time; the scheduler checks after every step which ones are settled.
    """

    def __init__(self) -> None:
        # In the order in which they began to wait, each with its number in that order.
        self._pods: dict[str, tuple[int, WaitingPod]] = {}
        self.uids = self._pods.keys()
        """The uids of all waiting pods; a live view."""
        self._added = 0
        self._settled: set[str] = set()
        # The deadlines, each with its pod's number; obsolete ones stay until they expire.
        self._deadlines: list[tuple[int, int, str]] = []
        self._most_kept = _SLACK

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        found = self._pods.get(uid)
        return None if found is None else found[1]

    def all(self) -> list[WaitingPod]:
        """Return all waiting pods, in the order in which they began to wait."""
        return [waiting for _, waiting in self._pods.values()]

    def add(self, waiting: WaitingPod) -> None:
        uid = waiting.pod.uid
        self.remove(uid)
        self._added += 1
        self._pods[uid] = (self._added, waiting)
        waiting.on_settled = self._settled.add
        for deadline_ns in waiting.deadlines_ns.values():
            heappush(self._deadlines, (deadline_ns, self._added, uid))
        if len(self._deadlines) > self._most_kept:
            # The list has doubled: drop the deadlines that no longer count.
            self._deadlines = [deadline for deadline in self._deadlines if self._counts(*deadline)]
            heapify(self._deadlines)
            self._most_kept = 2 * len(self._deadlines) + _SLACK
        if waiting.is_settled:
            self._settled.add(uid)

    def remove(self, uid: str) -> None:
        found = self._pods.pop(uid, None)
        if found is not None:
            found[1].on_settled = None
            self._settled.discard(uid)

    def settled(self, now: int) -> list[WaitingPod]:
        """Return the pods that are settled: allowed by all plugins, rejected, or timed out (rejected now)."""
        while (first := self._first()) is not None and first[0] <= now:
            waiting = self._pods[heappop(self._deadlines)[2]][1]
            late = min(name for name, deadline_ns in waiting.deadlines_ns.items() if deadline_ns <= now)
            waiting.reject(late, f"timed out waiting for {late}")
        return [self._pods[uid][1] for uid in sorted(self._settled, key=lambda uid: self._pods[uid][0])]

    def next_deadline(self) -> int | None:
        """Return the first deadline; 0 if a pod is settled already, None if none waits."""
        if self._settled:
            return 0
        first = self._first()
        return None if first is None else first[0]

    def _first(self) -> tuple[int, int, str] | None:
        """Return the first deadline that still counts."""
        while self._deadlines and not self._counts(*self._deadlines[0]):
            heappop(self._deadlines)
        return self._deadlines[0] if self._deadlines else None

    def _counts(self, deadline_ns: int, number: int, uid: str) -> bool:
        found = self._pods.get(uid)
        return found is not None and found[0] == number and deadline_ns in found[1].deadlines_ns.values()
