"""Pods that go for a group: one plan for all its pods, which begins whole and ends whole.

One pod of the group stands for all while victims are deleted (`GangState.leaders`): no pod of the group is attempted
before the last of them is seen to go. The nominations of all members begin together, and end together.
"""

from __future__ import annotations

from podium.api.pod_group import PodGroup
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.framework.group_plugin import GroupPostFilterResult
from podium.framework.status import unschedulable
from podium.machines.actions import Action
from podium.machines.grounds import Grounds
from podium.machines.scheduling.cap_waits import CapWaits
from podium.machines.scheduling.gangs.attempting import Attempting
from podium.machines.scheduling.gangs.gang_state import GangState
from podium.machines.scheduling.preemptions import Preemptions
from podium.machines.scheduling.queue.queued_pod import QueuedPod

_RULE = "one plan for a whole gang"


class GroupPreemptions:
    """Carries out the plans that are made for groups."""

    def __init__(self, cluster: Cluster, preemptions: Preemptions, cap: CapWaits, state: GangState) -> None:
        self._cluster = cluster
        self._preemptions = preemptions
        self._cap = cap
        self._state = state

    def holds(self, key: str) -> bool:
        """Whether the pods of a group are to stay out of the queue: victims are being deleted for it."""
        leader = self._state.leaders.get(key)
        return leader is not None and self._preemptions.holds(leader)

    def allowed(self, result: GroupPostFilterResult, first: PodRecord) -> GroupPostFilterResult:
        """The proposal, or why it has to wait: where caps on disruptions leave too little for it."""
        if result.retry_ns is not None:
            self._cap.wait(first, result.retry_ns)
        reason = self._cap.take(first, result.victims) if result.victims else ""
        return GroupPostFilterResult(unschedulable(f"preemption: {reason}")) if reason else result

    def begin(
        self, group: PodGroup, queued: list[QueuedPod], result: GroupPostFilterResult, attempting: Attempting, now: int
    ) -> list[Action]:
        """Nominate the members of a plan, and have its victims go; without a plan the nominations end."""
        nominations = self._cluster.nominations
        if result.placements or not result.keeps_nominations:
            for each in queued:
                nominations.remove(each.record.uid)
        if not result.placements:
            return []
        victims_on: dict[str, list[str]] = {}
        for victim in result.victims:
            victims_on.setdefault(victim.node_name, []).append(victim.uid)
        for pod, node_name in result.placements:
            nominations.put(pod, node_name, victims_on.pop(node_name, ()))
        leader, node_name = result.placements[0]
        victims, called_back = attempting.call_back(leader, result.victims, now)
        grounds = Grounds(
            _RULE, f"{len(result.victims):,} victims for room for {len(result.placements):,} pods", node_name
        )
        deletions = self._preemptions.start(
            leader, node_name, victims, evicts=result.evicts, binds_first=result.binds_first, grounds=grounds
        )
        if deletions:
            self._state.leaders[group.key] = leader.uid
        return [*called_back, *deletions]

    def with_group(self, pod: PodRecord) -> list[str]:
        """The pods (uids) for which victims went that were deleted for one: it, or all of its group."""
        key = pod.pod_class.pod_group
        if not key or self._state.leaders.get(key) != pod.uid:
            return [pod.uid]
        del self._state.leaders[key]
        return list(self._cluster.pod_groups.members(key))
