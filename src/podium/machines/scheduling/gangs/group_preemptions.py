"""Pods that go for a group: one plan for all its pods, which begins whole and ends whole.

One pod of the group stands for all while victims are deleted (`GangState.leaders`): no pod of the group is attempted
before the last of them is seen to go. The nominations of all members begin together, and end together.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.pod_group import PodGroup
from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.gang import Gang, gang_priority
from podium.framework.group_plugin import GroupPostFilterResult
from podium.framework.runner import Runner
from podium.framework.status import unschedulable
from podium.machines.actions import Action, PatchObject, Record
from podium.machines.grounds import Grounds
from podium.machines.scheduling.gangs.attempting import Attempting
from podium.machines.scheduling.gangs.gang_parts import GangParts
from podium.machines.scheduling.gangs.gang_state import GangState
from podium.machines.scheduling.queue.queued_pod import QueuedPod

_RULE = "one plan for a whole gang"


class GroupPreemptions:
    """Carries out the plans that are made for groups."""

    def __init__(self, parts: GangParts, state: GangState) -> None:
        self._cluster = parts.cluster
        self._preemptions = parts.preemptions
        self._cap = parts.cap
        self._futile = parts.futile
        self._state = state

    def holds(self, key: str) -> bool:
        """Whether the pods of a group are to stay out of the queue: victims are being deleted for it."""
        leader = self._state.leaders.get(key)
        return leader is not None and self._preemptions.holds(leader)

    def judge(self, group: PodGroup, members: Sequence[PodRecord], runner: Runner, now: int) -> list[Record]:
        """Judge what went for the group before, of which too few fit; says so if it must wait from now on."""
        if not self._futile.knows(members[0]):
            return []
        gang = Gang(group.key, tuple(members), 1, gang_priority(members, group.spec.priority))
        return self._futile.judge_plan(runner, gang, now)

    def wait(self, members: Sequence[PodRecord], now: int) -> str:
        """Why the group may not preempt now, "" where it may. Where it may not its pods are handed out again then."""
        reasons = [self._futile.wait(member, now) for member in members] if self._futile.knows(members[0]) else [""]
        return reasons[0]

    def note(self, members: Sequence[PodRecord]) -> list[PatchObject]:
        """What is to be noted in the pods after an attempt, so that whoever begins anew goes on with the count."""
        return self._futile.note_all(members)

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
        self._futile.begin_plan(result.placements, victims, now)
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
