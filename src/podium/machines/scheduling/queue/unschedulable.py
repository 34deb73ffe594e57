"""The pods that wait for an event: unschedulable ones, and gated ones.

Source: pkg/scheduler/backend/queue/unschedulable_pods.go.
"""

from __future__ import annotations

from podium.framework.events import ClusterEvent
from podium.machines.scheduling.queue.heap import PodHeap
from podium.machines.scheduling.queue.hints import FEW, NO, Hints, Kind, Rejection, Rejections, Wake
from podium.machines.scheduling.queue.queued_pod import QueuedPod

Group = dict[str, QueuedPod]


class UnschedulablePods:
    """Waiting pods by the plugins that hold them back, so that an event costs only the pods that it may concern."""

    def __init__(self, rejections: Rejections) -> None:
        self._rejections = rejections
        self._groups: dict[Rejection, Group] = {}
        self._group_of: dict[str, tuple[Rejection, Group]] = {}
        self.uids = self._group_of.keys()
        """Those of all pods that wait, as things are."""
        self._concerned: dict[Kind, list[tuple[Hints, Group]]] = {}
        self._deadlines = PodHeap()

    def __contains__(self, uid: str) -> bool:
        return uid in self._group_of

    def put(self, queued: QueuedPod, deadline_ns: int) -> None:
        """Let a pod wait for an event, until ``deadline_ns`` at most; one that waits may wait for another one now."""
        rejection = self._rejections.of(queued, queued.gated_by)
        group = self._groups.get(rejection)
        if group is None:
            group = self._new_group(rejection)
        uid, item = queued.record.uid, (deadline_ns, queued.record.key, queued.record.uid)
        before = self._group_of.get(uid)
        if before is not None:
            del before[1][uid]
        group[uid] = queued
        self._group_of[uid] = (rejection, group)
        if before is None or self._deadlines.item(uid) != item:
            self._deadlines.put(item)

    def remove(self, uid: str) -> None:
        """End a pod's wait. Raises KeyError for one that does not wait."""
        del self._group_of.pop(uid)[1][uid]
        self._deadlines.discard(uid)

    def discard(self, uid: str) -> None:
        """End a pod's wait, if it waits."""
        if uid in self._group_of:
            self.remove(uid)

    def woken_by(self, event: ClusterEvent) -> list[tuple[QueuedPod, Wake]]:
        """The pods that an event makes worth another attempt; they go on waiting until they are removed."""
        kind = (event.resource, event.action)
        concerned = self._concerned.get(kind)
        if concerned is None:
            asked = ((rejection.hints(event), group) for rejection, group in self._groups.items())
            concerned = self._concerned[kind] = [(hints, group) for hints, group in asked if hints is not None]
        woken: list[tuple[QueuedPod, Wake]] = []
        for hints, group in concerned:
            for queued in group.values():
                wake = hints.ask(queued.record, event)
                if wake is not NO:
                    woken.append((queued, wake))
        return woken

    def _new_group(self, rejection: Rejection) -> Group:
        # Most groups in which nobody waits are soon waited in again.
        if len(self._groups) >= FEW:
            self._groups = {held_by: group for held_by, group in self._groups.items() if group}
        self._concerned.clear()
        group = self._groups[rejection] = {}
        return group

    def take_overdue(self, now: int) -> list[QueuedPod]:
        """End the wait of the pods whose deadline has come, and return them, the longest overdue first."""
        overdue = []
        while (first := self._deadlines.first()) is not None and first[0] <= now:
            uid = first[-1]
            overdue.append(self._group_of[uid][1][uid])
            self.remove(uid)
        return overdue

    def next_deadline(self) -> int | None:
        """When the first deadline comes; None if no pod waits."""
        first = self._deadlines.first()
        return None if first is None else first[0]

    def count(self, *, gated: bool) -> int:
        """How many gated, or how many unschedulable pods wait."""
        return sum(len(group) for rejection, group in self._groups.items() if rejection.is_gated is gated)

    def pods(self, *, gated: bool) -> list[QueuedPod]:
        """The gated, or the unschedulable pods, by time of entry, then key, then uid."""
        found = [
            queued
            for rejection, group in self._groups.items()
            if rejection.is_gated is gated
            for queued in group.values()
        ]
        return sorted(found, key=lambda queued: (queued.queued_ns, queued.record.key, queued.record.uid))

    def check(self) -> None:
        """Raise AssertionError if a pod waits in the wrong group, or without a deadline."""
        self._deadlines.check()
        if sum(map(len, self._groups.values())) != len(self._group_of) or len(self._deadlines) != len(self._group_of):
            raise AssertionError("groups, pods and deadlines of the waiting pods differ in number")
        for rejection, group in self._groups.items():
            for uid, queued in group.items():
                if self._group_of.get(uid) != (rejection, group) or uid not in self._deadlines:
                    raise AssertionError(f"pod {queued.record.key} waits in a group that does not know it")
                if self._rejections.of(queued, queued.gated_by) is not rejection or rejection.by_nobody:
                    raise AssertionError(f"pod {queued.record.key} waits for what others wait for")
