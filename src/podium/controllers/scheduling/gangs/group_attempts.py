"""Scheduling attempts for all pods of a PodGroup at once, and their preemptions.

One pod of the group, the leader (`GangState.leaders`), stands for all while victims are deleted; until then no pod of
the group is attempted. Source: pkg/scheduler/schedule_one_podgroup.go (podGroupCycle, submitPodGroupAlgorithmResult).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from podium.api.pod_group import PodGroup
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Rationale, Record
from podium.controllers.scheduling.attempts import SchedulingAttempts
from podium.controllers.scheduling.gangs.group_reports import GangReleases, GangState, GroupReports, is_short
from podium.controllers.scheduling.pod_reports import fit_error
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.decide.gang_placement import (
    UNSCHEDULABLE,
    WAITING,
    GroupPlacement,
    GroupTrial,
    MemberPlacement,
    ask_group_post_filter,
    order_of,
    place_group,
)
from podium.decide.preempting.gang.gang import Gang, gang_priority
from podium.framework.handle import CycleState
from podium.framework.pre_filters import GroupPostFilterResult
from podium.framework.runner import Runner
from podium.framework.verdicts import PluginError, unschedulable
from podium.plugins.gang_scheduling import NAME

_NOTHING = GroupPostFilterResult(unschedulable())
PREEMPTING = "pod group is waiting for preemption to complete"


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt at the pods of a group, and its result."""

    group: PodGroup
    queued: list[QueuedPod]
    runner: Runner
    trial: GroupTrial
    found: GroupPlacement


class GroupAttempts:
    """Attempts the pods of a group together."""

    def __init__(
        self,
        attempts: SchedulingAttempts,
        state: GangState,
        preemptions: GroupPreemptions,
        reports: GroupReports,
        releases: GangReleases,
    ) -> None:
        self._attempts = attempts
        self._cluster = attempts.cluster
        self._queue = attempts.queue
        self._known = attempts.known
        self._state = state
        self._preemptions = preemptions
        self._reports = reports
        self._releases = releases

    def attempt(self, first: QueuedPod, now: int) -> list[Action]:
        """Attempt the group of a popped pod, with all of its pods that are not gated."""
        key = first.record.pod_class.pod_group
        joined = (self._queue.join(uid, now) for uid in tuple(self._cluster.pod_groups.members(key)))
        queued = [first, *(other for other in joined if other is not None)]
        queued.sort(key=lambda each: order_of(each.record, each.first_attempt_ns or 0))
        group = self._state.group(key)
        if group is None or is_short(self._cluster.pod_groups, group) or self._preemptions.holds(key):
            for each in queued:
                self._queue.give_back(each, now)
            return []
        names = sorted({each.record.scheduler_name for each in queued})
        if len(names) > 1:
            problem = (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{names[0]}" and "{names[1]}"'
            )
            return self._failed(group, queued, problem, now)
        runner = self._attempts.runners[names[0]]
        self._cluster.pass_time(now)
        for each in queued:
            self._attempts.begins(each, runner)
        trial = self._trial(group, queued)
        try:
            found = place_group(runner, trial)
            self._cluster.nodes.search_start = found.cursor
            attempt = _Attempt(group, queued, runner, trial, found)
            return (self._bind_members if found.is_enough else self._requeue_members)(attempt, now)
        except PluginError as error:
            return self._failed(group, queued, str(error), now)

    def _trial(self, group: PodGroup, queued: list[QueuedPod]) -> GroupTrial:
        trial = GroupTrial.of(group, [each.record for each in queued], self._state.placed(group.key))
        plugin = self._state.plugin(queued[0].record.scheduler_name)
        return replace(
            trial, seed=self._attempts.seed, alike=self._known.likeness, most_steps=plugin.most_arrangement_steps
        )

    def _bind_members(self, attempt: _Attempt, now: int) -> list[Action]:
        """Bind the pods of a group of which enough fit; the others return to the queue."""
        members = zip(attempt.queued, attempt.found.members, strict=True)
        going = {each.record.uid: (member.node_name, member.placement.state) for each, member in members if member.fits}
        return self._bind_some(attempt, going, _NOTHING, now)

    def _bind_before_victims_end(self, attempt: _Attempt, result: GroupPostFilterResult, now: int) -> list[Action]:
        """Bind members to nodes that their victims have yet to leave; the others return to the queue."""
        planned = zip(result.placements, result.states, strict=True)
        going = {pod.uid: (node_name, state) for (pod, node_name), state in planned}
        return self._bind_some(attempt, going, result, now)

    def _bind_some(
        self, attempt: _Attempt, going: Mapping[str, tuple[str, CycleState]], result: GroupPostFilterResult, now: int
    ) -> list[Action]:
        """Bind the pods that are ``going`` (by uid) to their nodes, and return the others to the queue."""
        group, queued, found = attempt.group, attempt.queued, attempt.found
        actions: list[Action] = []
        self._releases.forget(group.key)
        for each in queued:
            if each.record.uid in going:
                node_name, state = going[each.record.uid]
                actions += self._attempts.start_binding(
                    node_name, each, attempt.runner, state, now, is_together=group.is_gang
                )
        for each, member in zip(queued, found.members, strict=True):
            if each.record.uid not in going:
                message = self._staying(member, found, result, is_going=False)
                actions += self._attempts.requeue_unscheduled(each, self._plugins(found), message, now)
        if group.is_gang:
            return actions
        return [*actions, *self._reports.report(group, "True", "Scheduled", "", now)]

    def _requeue_members(self, attempt: _Attempt, now: int) -> list[Action]:
        """Return the pods of a group of which too few fit to the queue, and start one preemption for all."""
        group, queued, found, runner = attempt.group, attempt.queued, attempt.found, attempt.runner
        self._releases.note(group.key, runner.profile.scheduler_name, now)
        members = attempt.trial.members
        warnings = self._preemptions.judge(group, members, runner, now)
        result = self._post_filter(attempt, now)
        if result.states:
            return [*warnings, *self._bind_before_victims_end(attempt, result, now)]
        begun = self._preemptions.begin(group, queued, result, now)
        self._known.forget()
        actions: list[Action] = []
        going = {pod.uid for pod, _ in result.placements}
        for place, each in enumerate(queued):
            member = found.members[place] if found.members else None
            message = self._staying(member, found, result, is_going=each.record.uid in going)
            plugins = (*self._plugins(found), *result.waits_for)
            actions += self._attempts.requeue_unscheduled(each, plugins, message, now)
        message = f"{found.message}, {PREEMPTING}" if result.placements else found.message
        actions += self._reports.report(group, "False", "Unschedulable", message, now)
        return [*actions, *warnings, *self._attempts.futile.note_all(members), *begun]

    def _post_filter(self, attempt: _Attempt, now: int) -> GroupPostFilterResult:
        """Return the result of PostFilter; an empty one while the group must not preempt."""
        runner, members = attempt.runner, attempt.trial.members
        if not self._state.plugin(runner.profile.scheduler_name).preempts or attempt.found.problem:
            return _NOTHING
        reason = self._preemptions.wait(members, now)
        if reason:
            return GroupPostFilterResult(unschedulable(f"preemption: {reason}"))
        way_out = ask_group_post_filter(runner, attempt.group.key, attempt.trial)
        return self._preemptions.allowed(way_out, members[0])

    def _failed(self, group: PodGroup, queued: list[QueuedPod], problem: str, now: int) -> list[Action]:
        """Return all pods to the queue after an error, to be retried after a backoff."""
        actions: list[Action] = []
        for each in queued:
            actions += self._attempts.requeue_unscheduled(each, (), problem, now, error=True)
        return [*actions, *self._reports.report(group, "False", "SchedulerError", problem, now)]

    @staticmethod
    def _plugins(found: GroupPlacement) -> tuple[str, ...]:
        """Return the rejecting plugins; all members wait for the same."""
        return (*found.rejected_by, NAME)

    def _staying(
        self, member: MemberPlacement | None, found: GroupPlacement, result: GroupPostFilterResult, *, is_going: bool
    ) -> str:
        if member is None:
            return f"{UNSCHEDULABLE}, {found.problem}"
        if not member.fits:
            # It fits nowhere beside the members before it.
            is_reserved = member.reserved.is_success
            way_out = result.status.message
            return fit_error(member.placement, found.node_count, way_out) if is_reserved else member.reserved.message
        return f"{UNSCHEDULABLE}, {PREEMPTING if is_going else WAITING}"


_RULE = "one plan for a whole gang"


class GroupPreemptions:
    """Executes the preemption plans of groups."""

    def __init__(self, attempts: SchedulingAttempts, state: GangState) -> None:
        self._attempts = attempts
        self._cluster = attempts.cluster
        self._preemptions = attempts.preemptions
        self._cap = attempts.cap
        self._futile = attempts.futile
        self._state = state

    def holds(self, key: str) -> bool:
        """Return whether victims are being deleted for a group, whose pods stay out of the queue."""
        leader = self._state.leaders.get(key)
        return leader is not None and self._preemptions.holds(leader)

    def judge(self, group: PodGroup, members: Sequence[PodRecord], runner: Runner, now: int) -> list[Record]:
        """Judge earlier preemptions for a group of which too few fit; return the event about a new wait."""
        if not self._futile.knows(members[0]):
            return []
        gang = Gang(group.key, tuple(members), 1, gang_priority(members, group.spec.priority))
        return self._futile.judge_plan(runner, gang, now)

    def wait(self, members: Sequence[PodRecord], now: int) -> str:
        """Return why the group must not preempt now, "" if it may; its pods are retried after a wait."""
        reasons = [self._futile.wait(member, now) for member in members] if self._futile.knows(members[0]) else [""]
        return reasons[0] or next(filter(None, map(self._attempts.bindings.refused.reason, members)), "")

    def allowed(self, result: GroupPostFilterResult, first: PodRecord) -> GroupPostFilterResult:
        """Return the proposal, or the reason to wait if the disruption caps do not allow it."""
        if result.retry_ns is not None:
            self._cap.wait(first, result.retry_ns)
        reason = self._cap.take(first, result.victims) if result.victims else ""
        return GroupPostFilterResult(unschedulable(f"preemption: {reason}")) if reason else result

    def begin(self, group: PodGroup, queued: list[QueuedPod], result: GroupPostFilterResult, now: int) -> list[Action]:
        """Nominate the members of a plan, and delete its victims; without a plan, end the nominations."""
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
        victims, called_back = self._attempts.cancel_bindings(leader, result.victims, now)
        self._futile.begin_plan(result.placements, victims, now)
        rationale = Rationale(
            _RULE, f"{len(result.victims):,} victims for room for {len(result.placements):,} pods", node_name
        )
        deletions = self._preemptions.start(
            leader, node_name, victims, evicts=result.evicts, binds_first=result.binds_first, rationale=rationale
        )
        if leader.uid in self._preemptions:
            self._state.leaders[group.key] = leader.uid
        return [*called_back, *deletions]

    def with_group(self, pod: PodRecord) -> list[str]:
        """Return the uids of the pods for which one pod's victims were deleted: it, or its whole group."""
        key = pod.pod_class.pod_group
        if not key or self._state.leaders.get(key) != pod.uid:
            return [pod.uid]
        del self._state.leaders[key]
        return list(self._cluster.pod_groups.members(key))
