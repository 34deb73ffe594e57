"""Pods that a Permit plugin made wait, for plugins to let go or turn down.

Source: pkg/scheduler/framework/runtime/waiting_pods_map.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.cluster.pods import PodRecord


@dataclass(slots=True)
class WaitingPod:
    """A pod that waits. ``deadlines_ns`` maps each plugin that asked for the wait to the time when it gives up."""

    pod: PodRecord
    node_name: str
    deadlines_ns: dict[str, int] = field(default_factory=dict)
    rejected_by: str = ""
    message: str = ""

    def allow(self, plugin: str) -> None:
        """Say that ``plugin`` no longer wants the pod to wait; it goes on when nobody does."""
        self.deadlines_ns.pop(plugin, None)

    def reject(self, plugin: str, message: str) -> None:
        """Turn the pod down: it goes back to the queue."""
        if not self.rejected_by:
            self.rejected_by, self.message = plugin, message


class WaitingPods:
    """All pods that wait. Plugins change them at any time; the scheduler looks at them after every step."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        """The waiting pod of that uid, or None."""
        return self._pods.get(uid)

    def all(self) -> list[WaitingPod]:
        """All waiting pods, in the order in which they began to wait."""
        return list(self._pods.values())

    def add(self, waiting: WaitingPod) -> None:
        """Let a pod wait."""
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        """The pod no longer waits."""
        self._pods.pop(uid, None)

    def settled(self, now: int) -> list[WaitingPod]:
        """The pods that nobody makes wait any longer, that were turned down, or whose time is up (turned down now)."""
        found = []
        for waiting in self._pods.values():
            late = sorted(name for name, deadline in waiting.deadlines_ns.items() if deadline <= now)
            if late:
                waiting.reject(late[0], f"timed out waiting for {late[0]}")
            if waiting.rejected_by or not waiting.deadlines_ns:
                found.append(waiting)
        return found

    def next_deadline(self) -> int | None:
        """When the first of the pods gives up; 0 if one is settled already, None if none waits."""
        if any(waiting.rejected_by or not waiting.deadlines_ns for waiting in self._pods.values()):
            return 0
        return min((d for waiting in self._pods.values() for d in waiting.deadlines_ns.values()), default=None)
