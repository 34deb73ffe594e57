"""Pods that wait for others of their PodGroup, or for the group: what wakes them.

Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go (EventsToRegister).
"""

from __future__ import annotations

from podium.api.pod_group import PodGroup
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.machines.scheduling.gangs.gang_state import GangState
from podium.machines.scheduling.queue.queue import GROUP_CHANGED, SchedulingQueue


class MemberWaits:
    """Wakes the pods of a group when another one comes, or the group comes or asks for fewer."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, state: GangState) -> None:
        self._groups = cluster.pod_groups
        self._queue = queue
        self._state = state

    def came(self, pod: PodRecord, now: int) -> None:
        """A pod of a group is seen for the first time: with it there may be enough."""
        if not self._state.concerns(pod):
            return
        key = pod.pod_class.pod_group
        group = self._groups.by_key.get(key)
        if group is not None and group.is_gang and self._groups.live(key) >= group.min_count:
            self._wake(key, pod.uid, now)

    def left(self, pod: PodRecord, now: int) -> None:
        """A pod of a group is gone. Where victims were deleted for it, the others need not wait for that any more."""
        key = pod.pod_class.pod_group
        if key and self._state.leaders.get(key) == pod.uid:
            del self._state.leaders[key]
            self._wake(key, pod.uid, now)

    def group_changed(self, before: PodGroup | None, group: PodGroup, now: int) -> None:
        """A group came, or changed."""
        if self._state.is_on and (before is None or before.spec != group.spec):
            self._wake(group.key, "", now)

    def _wake(self, key: str, but: str, now: int) -> None:
        for uid in tuple(self._groups.members(key)):
            if uid != but:
                self._queue.wake(uid, GROUP_CHANGED, now)
