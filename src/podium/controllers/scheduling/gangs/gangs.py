"""The gang scheduling of one scheduler: attempts at whole PodGroups, their preemptions, and common bindings.

One pod of a group, the leader (`GangState.leaders`), stands for all while victims are deleted; until then no pod of the
group is attempted. Source: pkg/scheduler/schedule_one_podgroup.go (podGroupCycle, submitPodGroupAlgorithmResult).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct

from podium.api.pod_group import PodGroup
from podium.api.versions.release import Behavior
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Rationale
from podium.controllers.deadlines import Deadlines, earliest
from podium.controllers.scheduling.attempts import SchedulingAttempts
from podium.controllers.scheduling.binding_stages import BindingCycle
from podium.controllers.scheduling.gangs.group_reports import GangReleases, GangState, GroupReports, is_short
from podium.controllers.scheduling.pod_reports import fit_error
from podium.controllers.scheduling.queue.queue import GROUP_CHANGED
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.decide import gang_placement
from podium.decide.gang_placement import UNSCHEDULABLE, WAITING, GroupPlacement, GroupTrial, MemberPlacement
from podium.decide.preempting.gang.gang import Gang, gang_priority
from podium.framework.handle import CycleState
from podium.framework.pre_filters import GroupPostFilterResult
from podium.framework.runner import Runner
from podium.framework.verdicts import Code, PluginError, Status, unschedulable
from podium.plugins.gang_scheduling import NAME


class Gangs:
    """The PodGroups whose pods are scheduled together; inactive if no profile schedules groups."""

    def __init__(self, attempts: SchedulingAttempts, state: GangState) -> None:
        cluster, self._queue = attempts.cluster, attempts.queue
        self._groups = cluster.pod_groups
        self.state = state
        # A plain attribute, because it is read for each observation.
        self.is_on = bool(state.plugins)
        self.concerns = state.concerns
        self.reports = GroupReports()
        self.bindings = GangBindings(attempts, state, self.reports)
        self.releases = GangReleases(cluster, self._queue, state)
        self.attempts = GroupAttempts(attempts, state, self.reports, self.releases)

    def tick(self, now: int) -> list[Action]:
        """Return the actions that are due: of gangs whose time is up, and failed writes."""
        actions = self.bindings.give_up(now)
        actions += self.releases.take_due(now)
        actions += self.reports.take_due(self._groups.by_key, now)
        return actions

    def next_deadline(self) -> int | None:
        """Return when `tick` is next due; None for never."""
        return earliest((self.bindings.next_deadline(), self.releases.next_deadline(), self.reports.next_deadline()))

    @property
    def keeps_alive(self) -> bool:
        """Return whether something new is going to happen without other events."""
        return self.bindings.next_deadline() is not None or self.releases.keeps_alive

    def on_new_pending(self, pod: PodRecord, now: int) -> None:
        """Handle a pending pod that is observed for the first time: there may be enough pods now."""
        group = self._groups.of(pod) if self.concerns(pod) else None
        if group is not None and group.is_gang and not is_short(self._groups, group):
            self._wake(group.key, pod.uid, now)

    def on_assigned(self, pod: PodRecord, now: int) -> list[Action]:
        """Handle a pod on a node: the scheduler that bound it may have ended before it reported its group."""
        group = self.state.group(pod.pod_class.pod_group)
        return [] if group is None or not self.concerns(pod) else self.report_if_scheduled(group, now)

    def report_if_scheduled(self, group: PodGroup, now: int) -> list[Action]:
        """Report that a group was scheduled, if it was and is not reported."""
        if not self.is_on or self.reports.is_scheduled(group):
            return []
        bound = self.state.bound(group.key)
        if len(bound) < group.min_count or not self.concerns(bound[0]):
            return []
        self.releases.forget(group.key)
        return [*self.reports.report(group, "True", "Scheduled", "", now)]

    def on_not_pending(self, pod: PodRecord, now: int) -> None:
        """Handle a pod that is gone or not pending any more; the others need not wait for a preemption that it led."""
        key = pod.pod_class.pod_group
        if key and self.state.leaders.get(key) == pod.uid:
            del self.state.leaders[key]
            self._wake(key, pod.uid, now)

    def is_short(self, pod: PodRecord) -> bool:
        """Return whether too few pods of a pod's gang exist for another attempt."""
        group = self._groups.of(pod) if self.concerns(pod) else None
        return group is not None and is_short(self._groups, group)

    def ends_plan(self, before: PodGroup, group: PodGroup) -> bool:
        """Return whether a change of a group may invalidate its plan."""
        is_changed = (before.spec.priority, before.topology_key) != (group.spec.priority, group.topology_key)
        return self.is_on and (is_changed or is_short(self._groups, group))

    def group_changed(self, before: PodGroup | None, group: PodGroup, now: int) -> None:
        self.reports.on_update(group)
        if self.is_on and (before is None or before.spec != group.spec):
            self._wake(group.key, "", now)

    def group_gone(self, group: PodGroup) -> None:
        self.reports.forget(group.key)
        self.releases.forget(group.key)
        self.state.leaders.pop(group.key, None)

    def _wake(self, key: str, but: str, now: int) -> None:
        for uid in tuple(self._groups.members(key)):
            if uid != but:
                self._queue.wake(uid, GROUP_CHANGED, now)


class GangBindings:
    """Binds the pods of a gang together, or returns them to the queue when too few are left or time is up."""

    def __init__(self, attempts: SchedulingAttempts, state: GangState, reports: GroupReports) -> None:
        self._attempts = attempts
        self._groups = attempts.cluster.pod_groups
        self._bindings = attempts.bindings
        self._state = state
        self._reports = reports
        # By the group's key, when its pods stop waiting.
        self._deadlines: Deadlines[str] = Deadlines()
        self.next_deadline = self._deadlines.next_time
        self._checked_at = (0, 0)

    def settle(self, now: int) -> list[Action]:
        """Check the gangs with waiting pods, if anything has changed."""
        if not self._bindings.gathered or self._checked_at == (self._bindings.moves, self._groups.version):
            return []
        actions: list[Action] = []
        for key, ready in self._waiting().items():
            actions += self._settle(key, ready, now)
        self._checked_at = (self._bindings.moves, self._groups.version)
        return actions

    def give_up(self, now: int) -> list[Action]:
        """Return the pods of gangs whose time is up to the queue."""
        actions: list[Action] = []
        while (key := self._deadlines.take_due(now)) is not None:
            actions += self._reject(key, self._waiting().get(key, []), now)
        return actions

    def _waiting(self) -> dict[str, list[BindingCycle]]:
        """Return the cycles of waiting pods by the group's key, in the order in which they began to wait."""
        found: dict[str, list[BindingCycle]] = {}
        for cycle in map(self._bindings.find, self._bindings.gathered):
            if cycle is not None:
                found.setdefault(cycle.queued.record.pod_class.pod_group, []).append(cycle)
        return found

    def _settle(self, key: str, ready: Sequence[BindingCycle], now: int) -> list[Action]:
        group = self._state.group(key)
        sure = len(self._state.bound(key)) + len(ready)
        if group is None or sure + self._state.coming(key) < group.min_count:
            return self._reject(key, ready, now)
        if sure < group.min_count:
            if key not in self._deadlines.times:
                # The group's timeout, or the profile's.
                plugin = self._state.plugins[ready[0].queued.record.scheduler_name]
                timeout_ns = group.schedule_timeout_ns
                self._deadlines.set(key, now + (plugin.schedule_timeout_ns if timeout_ns is None else timeout_ns))
            return []
        self._deadlines.set(key, None)
        actions: list[Action] = []
        for cycle in ready:
            uid = cycle.queued.record.uid
            actions += self._attempts.advance_binding(uid, self._bindings.bind_gang_member(uid, now), now)
        return [*actions, *self._reports.report(group, "True", "Scheduled", "", now)]

    def _reject(self, key: str, waiting: Sequence[BindingCycle], now: int) -> list[Action]:
        """Cancel the bindings of the group's waiting members, and requeue the pods."""
        self._deadlines.set(key, None)
        status = Status(Code.UNSCHEDULABLE, (f"{UNSCHEDULABLE}, {WAITING}",), NAME)
        actions: list[Action] = []
        for cycle in waiting:
            actions += self._attempts.requeue_failed_binding(
                self._bindings.cancel(cycle.queued.record.uid, status), now, is_error=False
            )
        return actions


_NOTHING = GroupPostFilterResult(unschedulable())
PREEMPTING = "pod group is waiting for preemption to complete"


class _Attempt(Struct, frozen=True):
    """An attempt at the pods of a group, and its result."""

    group: PodGroup
    queued: list[QueuedPod]
    runner: Runner
    trial: GroupTrial
    found: GroupPlacement


@dataclass(eq=False)
class GroupAttempts:
    """Attempts the pods of a group together, and carries out the preemption plans of groups."""

    attempts: SchedulingAttempts
    state: GangState
    reports: GroupReports
    releases: GangReleases

    def attempt(self, first: QueuedPod, now: int) -> list[Action]:
        """Attempt the group of a popped pod, with all of its pods that are not gated."""
        key = first.record.pod_class.pod_group
        joined = (self.attempts.queue.join(uid, now) for uid in tuple(self.attempts.cluster.pod_groups.members(key)))
        queued = [first, *(other for other in joined if other is not None)]
        queued.sort(key=lambda each: gang_placement.order_of(each.record, each.first_attempt_ns or 0))
        group = self.state.group(key)
        if group is None or is_short(self.attempts.cluster.pod_groups, group) or self.holds(key):
            for each in queued:
                self.attempts.queue.give_back(each, now)
            return []
        names = sorted({each.record.scheduler_name for each in queued})
        if len(names) > 1:
            problem = (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{names[0]}" and "{names[1]}"'
            )
            return self._failed(group, queued, problem, now)
        runner = self.attempts.runners[names[0]]
        self.attempts.cluster.pass_time(now)
        for each in queued:
            if self.attempts.on_attempt is not None:
                self.attempts.on_attempt(each, runner)
        trial = replace(
            GroupTrial.of(group, [each.record for each in queued], self.state.placed(group.key)),
            seed=self.attempts.seed,
            alike=self.attempts.known.likeness,
            most_steps=self.state.plugins[names[0]].most_arrangement_steps,
        )
        try:
            found = gang_placement.place_group(runner, trial)
            self.attempts.cluster.nodes.search_start = found.cursor
            attempt = _Attempt(group, queued, runner, trial, found)
            if not found.is_enough:
                return self._requeue_members(attempt, now)
            members = ((each.record.uid, member) for each, member in zip(queued, found.members, strict=True))
            going = {uid: (member.node_name, member.placement.state) for uid, member in members if member.fits}
            return self._bind_some(attempt, going, _NOTHING, now)
        except PluginError as error:
            return self._failed(group, queued, str(error), now)

    def _bind_some(
        self, attempt: _Attempt, going: Mapping[str, tuple[str, CycleState]], result: GroupPostFilterResult, now: int
    ) -> list[Action]:
        """Bind the pods that are ``going`` (by uid) to their nodes, and return the others to the queue."""
        group, queued, found, runner = attempt.group, attempt.queued, attempt.found, attempt.runner
        actions: list[Action] = []
        self.releases.forget(group.key)
        for each in queued:
            if each.record.uid in going:
                node_name, state = going[each.record.uid]
                actions += self.attempts.start_binding(node_name, each, runner, state, now, is_together=group.is_gang)
        for each, member in zip(queued, found.members, strict=True):
            if each.record.uid not in going:
                message = self._message_of_staying(member, attempt, result, is_going=False)
                actions += self.attempts.requeue_unscheduled(each, (*found.rejected_by, NAME), message, now)
        if group.is_gang:
            return actions
        return [*actions, *self.reports.report(group, "True", "Scheduled", "", now)]

    def _requeue_members(self, attempt: _Attempt, now: int) -> list[Action]:
        """Return the pods of a group to the queue if too few fit, and start one preemption for all."""
        group, queued, found, runner = attempt.group, attempt.queued, attempt.found, attempt.runner
        self.releases.note(group.key, runner.profile.scheduler_name, now)
        members = attempt.trial.members
        futile, warnings = self.attempts.futile, []
        if futile.knows(members[0]):
            gang = Gang(group.key, tuple(members), 1, priority=gang_priority(members, group.spec.priority))
            warnings = futile.judge_plan(runner, gang, now)
        result = self._post_filter(attempt, now)
        if result.states:
            # Members are bound to nodes that their victims have yet to leave.
            planned = zip(result.placements, result.states, strict=True)
            early = {pod.uid: (node_name, state) for (pod, node_name), state in planned}
            return [*warnings, *self._bind_some(attempt, early, result, now)]
        deletions = self._begin_preemption(group, queued, result, now)
        self.attempts.known.forget()
        actions: list[Action] = []
        going = {pod.uid for pod, _ in result.placements}
        for place, each in enumerate(queued):
            member = found.members[place] if found.members else None
            message = self._message_of_staying(member, attempt, result, is_going=each.record.uid in going)
            plugins = (*found.rejected_by, NAME, *result.waits_for)
            actions += self.attempts.requeue_unscheduled(each, plugins, message, now)
        message = f"{found.message}, {PREEMPTING}" if result.placements else found.message
        actions += self.reports.report(group, "False", "Unschedulable", message, now)
        return [*actions, *warnings, *futile.note(*members), *deletions]

    def _post_filter(self, attempt: _Attempt, now: int) -> GroupPostFilterResult:
        """Return the result of PostFilter; an empty one while the group must not preempt, which is retried then."""
        runner, members, futile, cap = attempt.runner, attempt.trial.members, self.attempts.futile, self.attempts.cap
        if not self.state.plugins[runner.profile.scheduler_name].preempts or attempt.found.problem:
            return _NOTHING
        waits = [futile.wait(member, now) for member in members] if futile.knows(members[0]) else [""]
        reason = waits[0] or next(filter(None, map(self.attempts.bindings.refused.reason, members)), "")
        if not reason:
            result = gang_placement.ask_group_post_filter(runner, attempt.group.key, attempt.trial)
            if result.retry_ns is not None:
                cap.wait(members[0], result.retry_ns)
            reason = cap.take(members[0], result.victims) if result.victims else ""
            if not reason:
                return result
        return GroupPostFilterResult(unschedulable(f"preemption: {reason}"))

    def _failed(self, group: PodGroup, queued: list[QueuedPod], problem: str, now: int) -> list[Action]:
        """Return all pods to the queue after an error, to be retried after a backoff."""
        actions: list[Action] = []
        for each in queued:
            actions += self.attempts.requeue_unscheduled(each, (), problem, now, error=True)
        return [*actions, *self.reports.report(group, "False", "SchedulerError", problem, now)]

    def _message_of_staying(
        self, member: MemberPlacement | None, attempt: _Attempt, result: GroupPostFilterResult, *, is_going: bool
    ) -> str:
        """Return why a member stays pending; ``is_going``: the plan has a node for it."""
        found = attempt.found
        if member is None:
            return f"{UNSCHEDULABLE}, {found.problem}"
        if not member.fits:
            # It fits nowhere beside the members before it.
            is_reserved = member.reserved.is_success
            proposal = result.status.message
            return fit_error(member.placement, found.node_count, proposal) if is_reserved else member.reserved.message
        if is_going:
            return f"{UNSCHEDULABLE}, {PREEMPTING}"
        counts_missing = self.attempts.cluster.release.has(Behavior.GANG_SHORTFALL_COUNTED)
        return f"{UNSCHEDULABLE}, {found.shortfall(len(attempt.trial.placed)) if counts_missing else WAITING}"

    def holds(self, key: str) -> bool:
        """Return whether victims are being deleted for a group, whose pods stay out of the queue."""
        leader = self.state.leaders.get(key)
        return leader is not None and self.attempts.preemptions.holds(leader)

    def _begin_preemption(
        self, group: PodGroup, queued: list[QueuedPod], result: GroupPostFilterResult, now: int
    ) -> list[Action]:
        """Nominate the members of a plan, and delete its victims; without a plan, end the nominations."""
        nominations = self.attempts.cluster.nominations
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
        victims, cancelled = self.attempts.cancel_bindings(leader, result.victims, now)
        self.attempts.futile.begin_plan(result.placements, victims, now)
        what = f"{len(result.victims):,} victims for room for {len(result.placements):,} pods"
        rationale = Rationale("one plan for a whole gang", what, node_name)
        deletions = self.attempts.preemptions.start(
            leader, victims, group, evicts=result.evicts, binds_first=result.binds_first, rationale=rationale
        )
        if leader.uid in self.attempts.preemptions:
            self.state.leaders[group.key] = leader.uid
        return [*cancelled, *deletions]

    def with_group(self, pod: PodRecord) -> list[str]:
        """Return the uids of the pods for which one pod's victims were deleted (it, or its group); end its lead."""
        key = pod.pod_class.pod_group
        if not key or self.state.leaders.get(key) != pod.uid:
            return [pod.uid]
        del self.state.leaders[key]
        return list(self.attempts.cluster.pod_groups.members(key))
