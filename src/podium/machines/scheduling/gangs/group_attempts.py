"""One attempt for all pods of a PodGroup: enough of them get places together, or none does.

Source: pkg/scheduler/schedule_one_podgroup.go (podGroupCycle, submitPodGroupAlgorithmResult).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from podium.api.pod_group import PodGroup
from podium.decide.gangs.group_placement import UNSCHEDULABLE, WAITING, GroupPlacement, MemberPlacement
from podium.decide.gangs.group_trial import GroupTrial
from podium.decide.gangs.placing import order_of, place_group
from podium.decide.gangs.ways_out import ask_group_post_filter
from podium.framework.errors import PluginError
from podium.framework.group_plugin import GroupPostFilterResult
from podium.framework.runner import Runner
from podium.framework.status import unschedulable
from podium.machines.actions import Action
from podium.machines.scheduling.fit_error import fit_error
from podium.machines.scheduling.gangs.attempting import Attempting
from podium.machines.scheduling.gangs.gang_parts import GangParts
from podium.machines.scheduling.gangs.gang_state import GangState
from podium.machines.scheduling.gangs.group_preemptions import GroupPreemptions
from podium.machines.scheduling.gangs.group_reports import GroupReports
from podium.machines.scheduling.gangs.releases import Releases
from podium.machines.scheduling.queue.queued_pod import QueuedPod
from podium.plugins.gang_scheduling import NAME

_NOTHING = GroupPostFilterResult(unschedulable())
PREEMPTING = "pod group is waiting for preemption to complete"


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt at the pods of a group, and what was found."""

    group: PodGroup
    queued: list[QueuedPod]
    runner: Runner
    trial: GroupTrial
    found: GroupPlacement


class GroupAttempts:
    """Attempts the pods of a group together, and says what comes of it."""

    def __init__(
        self,
        parts: GangParts,
        state: GangState,
        preemptions: GroupPreemptions,
        reports: GroupReports,
        releases: Releases,
    ) -> None:
        self._cluster = parts.cluster
        self._runners = parts.runners
        self._queue = parts.queue
        self._known = parts.known
        self._state = state
        self._preemptions = preemptions
        self._reports = reports
        self._releases = releases

    def attempt(self, first: QueuedPod, attempting: Attempting, now: int) -> list[Action]:
        """Attempt the group of a pod that was popped, with all of its pods that no gate holds."""
        key = first.record.pod_class.pod_group
        joined = (self._queue.join(uid, now) for uid in tuple(self._cluster.pod_groups.members(key)))
        queued = [first, *(other for other in joined if other is not None)]
        queued.sort(key=lambda each: order_of(each.record, each.first_attempt_ns or 0))
        group = self._state.group(key)
        if group is None or self._is_short(group) or self._preemptions.holds(key):
            for each in queued:
                self._queue.give_back(each, now)
            return []
        names = sorted({each.record.scheduler_name for each in queued})
        if len(names) > 1:
            problem = (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{names[0]}" and "{names[1]}"'
            )
            return self._failed(group, queued, problem, attempting, now)
        runner = self._runners[names[0]]
        self._cluster.pass_time(now)
        for each in queued:
            attempting.begins(each, runner)
        trial = self._trial(group, queued, attempting)
        try:
            found = place_group(runner, trial)
            attempting.cursor = found.cursor
            attempt = _Attempt(group, queued, runner, trial, found)
            return (self._go if found.is_enough else self._stay)(attempt, attempting, now)
        except PluginError as error:
            return self._failed(group, queued, str(error), attempting, now)

    def _is_short(self, group: PodGroup) -> bool:
        """Whether there are too few pods for an attempt to be of use."""
        return group.is_gang and self._cluster.pod_groups.live(group.key) < group.min_count

    def _trial(self, group: PodGroup, queued: list[QueuedPod], attempting: Attempting) -> GroupTrial:
        trial = GroupTrial.of(group, [each.record for each in queued], self._state.placed(group.key))
        plugin = self._state.plugin(queued[0].record.scheduler_name)
        return replace(
            trial,
            seed=attempting.seed,
            cursor=attempting.cursor,
            alike=self._known.likeness,
            most_steps=plugin.most_arrangement_steps,
        )

    def _go(self, attempt: _Attempt, attempting: Attempting, now: int) -> list[Action]:
        """Enough of them fit: these set out; the others stay."""
        group, queued, found, runner = attempt.group, attempt.queued, attempt.found, attempt.runner
        actions: list[Action] = []
        self._releases.forget(group.key)
        for each, member in zip(queued, found.members, strict=True):
            if member.fits:
                state = member.placement.state
                actions += attempting.goes_to(member.node_name, each, runner, state, now, is_together=group.is_gang)
        for each, member in zip(queued, found.members, strict=True):
            if not member.fits:
                message = self._message(member, found, "")
                actions += attempting.not_scheduled(each, self._plugins(found), message, now)
        if group.is_gang:
            return actions
        return [*actions, *self._reports.report(group, "True", "Scheduled", "", now)]

    def _go_first(
        self, attempt: _Attempt, result: GroupPostFilterResult, attempting: Attempting, now: int
    ) -> list[Action]:
        """Members set out for nodes that their victims have yet to leave; the others stay."""
        group, found = attempt.group, attempt.found
        actions: list[Action] = []
        self._releases.forget(group.key)
        going = {
            pod.uid: (node_name, state)
            for (pod, node_name), state in zip(result.placements, result.states, strict=True)
        }
        for each in attempt.queued:
            if each.record.uid in going:
                node_name, state = going[each.record.uid]
                actions += attempting.goes_to(node_name, each, attempt.runner, state, now, is_together=group.is_gang)
        for each, member in zip(attempt.queued, found.members, strict=True):
            if each.record.uid not in going:
                message = self._staying(member, found, result, is_going=False)
                actions += attempting.not_scheduled(each, self._plugins(found), message, now)
        if group.is_gang:
            return actions
        return [*actions, *self._reports.report(group, "True", "Scheduled", "", now)]

    def _stay(self, attempt: _Attempt, attempting: Attempting, now: int) -> list[Action]:
        """Too few of them fit: none goes. Pods that have to go for them go by one plan for all."""
        group, queued, found, runner = attempt.group, attempt.queued, attempt.found, attempt.runner
        self._releases.note(group.key, runner.profile.scheduler_name, now)
        members = attempt.trial.members
        warnings = self._preemptions.judge(group, members, runner, now)
        result = self._way_out(attempt, now)
        if result.states:
            return [*warnings, *self._go_first(attempt, result, attempting, now)]
        begun = self._preemptions.begin(group, queued, result, attempting, now)
        self._known.forget()
        actions: list[Action] = []
        going = {pod.uid for pod, _ in result.placements}
        for place, each in enumerate(queued):
            member = found.members[place] if found.members else None
            message = self._staying(member, found, result, is_going=each.record.uid in going)
            actions += attempting.not_scheduled(each, self._plugins(found), message, now)
        actions += self._reports.report(group, "False", "Unschedulable", self._group_message(found, result), now)
        return [*actions, *warnings, *self._preemptions.note(members), *begun]

    def _way_out(self, attempt: _Attempt, now: int) -> GroupPostFilterResult:
        """What is proposed for the group; nothing while it must wait before it may preempt."""
        runner, members = attempt.runner, attempt.trial.members
        if not self._state.plugin(runner.profile.scheduler_name).preempts or attempt.found.problem:
            return _NOTHING
        reason = self._preemptions.wait(members, now)
        if reason:
            return GroupPostFilterResult(unschedulable(f"preemption: {reason}"))
        way_out = ask_group_post_filter(runner, attempt.group.key, attempt.trial)
        return self._preemptions.allowed(way_out, members[0])

    def _failed(
        self, group: PodGroup, queued: list[QueuedPod], problem: str, attempting: Attempting, now: int
    ) -> list[Action]:
        """Something went wrong, which is no one's rejection: all are tried again after a backoff."""
        actions: list[Action] = []
        for each in queued:
            actions += attempting.not_scheduled(each, (), problem, now, error=True)
        return [*actions, *self._reports.report(group, "False", "SchedulerError", problem, now)]

    @staticmethod
    def _plugins(found: GroupPlacement) -> tuple[str, ...]:
        """What helps any member may help all of them: they wait for the same."""
        return (*found.rejected_by, NAME)

    def _staying(
        self, member: MemberPlacement | None, found: GroupPlacement, result: GroupPostFilterResult, *, is_going: bool
    ) -> str:
        if member is None:
            return f"{UNSCHEDULABLE}, {found.problem}"
        if not member.fits:
            return self._message(member, found, result.status.message)
        return f"{UNSCHEDULABLE}, {PREEMPTING if is_going else WAITING}"

    @staticmethod
    def _message(member: MemberPlacement, found: GroupPlacement, way_out: str) -> str:
        """Why a pod fits nowhere beside the members before it."""
        if not member.reserved.is_success:
            return member.reserved.message
        return fit_error(member.placement, found.node_count, way_out)

    @staticmethod
    def _group_message(found: GroupPlacement, result: GroupPostFilterResult) -> str:
        return f"{found.message}, {PREEMPTING}" if result.placements else found.message
