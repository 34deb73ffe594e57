"""Pods that a Permit plugin made wait, for plugins to let go or turn down.

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
    """A pod that waits. ``deadlines_ns`` maps each plugin that asked for the wait to the time when it gives up."""

    pod: PodRecord
    node_name: str
    deadlines_ns: dict[str, int] = field(default_factory=dict)
    rejected_by: str = ""
    message: str = ""
    on_settled: Callable[[str], None] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether nobody makes the pod wait any longer, or it was turned down."""
        return bool(self.rejected_by) or not self.deadlines_ns

    def allow(self, plugin: str) -> None:
        """Say that ``plugin`` no longer wants the pod to wait; it goes on when nobody does."""
        self.deadlines_ns.pop(plugin, None)
        self._tell()

    def reject(self, plugin: str, message: str) -> None:
        """Turn the pod down: it goes back to the queue."""
        if not self.rejected_by:
            self.rejected_by, self.message = plugin, message
        self._tell()

    def _tell(self) -> None:
        if self.is_settled and self.on_settled is not None:
            self.on_settled(self.pod.uid)


class WaitingPods:
    """All pods that wait. Plugins change them at any time; the scheduler looks after every step who has settled."""

    def __init__(self) -> None:
        # In the order in which they began to wait, each with its number in that order.
        self._pods: dict[str, tuple[int, WaitingPod]] = {}
        self.uids = self._pods.keys()
        """Those of all that wait, as things are."""
        self._added = 0
        self._settled: set[str] = set()
        # Deadlines, each with its pod's number; what is no longer so stays until its time has come.
        self._deadlines: list[tuple[int, int, str]] = []
        self._most_kept = _SLACK

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        """The waiting pod of that uid, or None."""
        found = self._pods.get(uid)
        return None if found is None else found[1]

    def all(self) -> list[WaitingPod]:
        """All waiting pods, in the order in which they began to wait."""
        return [waiting for _, waiting in self._pods.values()]

    def add(self, waiting: WaitingPod) -> None:
        """Let a pod wait."""
        uid = waiting.pod.uid
        self.remove(uid)
        self._added += 1
        self._pods[uid] = (self._added, waiting)
        waiting.on_settled = self._settled.add
        for deadline_ns in waiting.deadlines_ns.values():
            heappush(self._deadlines, (deadline_ns, self._added, uid))
        self._sweep()
        if waiting.is_settled:
            self._settled.add(uid)

    def remove(self, uid: str) -> None:
        """The pod no longer waits."""
        found = self._pods.pop(uid, None)
        if found is not None:
            found[1].on_settled = None
            self._settled.discard(uid)

    def settled(self, now: int) -> list[WaitingPod]:
        """The pods that nobody makes wait any longer, that were turned down, or whose time is up (turned down now)."""
        while (first := self._first()) is not None and first[0] <= now:
            waiting = self._pods[heappop(self._deadlines)[2]][1]
            late = min(name for name, deadline_ns in waiting.deadlines_ns.items() if deadline_ns <= now)
            waiting.reject(late, f"timed out waiting for {late}")
        return [self._pods[uid][1] for uid in sorted(self._settled, key=lambda uid: self._pods[uid][0])]

    def next_deadline(self) -> int | None:
        """When the first of the pods gives up; 0 if one is settled already, None if none waits."""
        if self._settled:
            return 0
        first = self._first()
        return None if first is None else first[0]

    def _first(self) -> tuple[int, int, str] | None:
        """The first deadline that still counts."""
        while self._deadlines and not self._counts(*self._deadlines[0]):
            heappop(self._deadlines)
        return self._deadlines[0] if self._deadlines else None

    def _sweep(self) -> None:
        """Drop the deadlines that no longer count, each time the list has doubled."""
        if len(self._deadlines) > self._most_kept:
            self._deadlines = [deadline for deadline in self._deadlines if self._counts(*deadline)]
            heapify(self._deadlines)
            self._most_kept = 2 * len(self._deadlines) + _SLACK

    def _counts(self, deadline_ns: int, number: int, uid: str) -> bool:
        found = self._pods.get(uid)
        return found is not None and found[0] == number and deadline_ns in found[1].deadlines_ns.values()
