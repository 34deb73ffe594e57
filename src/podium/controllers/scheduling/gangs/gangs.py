"""The gang scheduling of one scheduler."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.pod_group import PodGroup
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action
from podium.controllers.deadlines import Deadlines, earliest
from podium.controllers.scheduling.attempts import SchedulingAttempts
from podium.controllers.scheduling.binding_stages import BindingCycle
from podium.controllers.scheduling.gangs.group_attempts import GroupAttempts, GroupPreemptions
from podium.controllers.scheduling.gangs.group_reports import GangReleases, GangState, GroupReports, is_short
from podium.controllers.scheduling.queue.queue import GROUP_CHANGED
from podium.decide.gang_placement import UNSCHEDULABLE, WAITING
from podium.framework.verdicts import Code, Status
from podium.plugins.gang_scheduling import NAME


class Gangs:
    """The PodGroups whose pods are scheduled together; inactive if no profile schedules groups."""

    def __init__(self, attempts: SchedulingAttempts, state: GangState) -> None:
        cluster, self._queue = attempts.cluster, attempts.queue
        self._groups = cluster.pod_groups
        self.state = state
        # A plain attribute, because it is read for each observation.
        self.is_on = state.is_on
        self.concerns = state.concerns
        self.preemptions = GroupPreemptions(attempts, state)
        self.reports = GroupReports()
        self.bindings = GangBindings(attempts, state, self.reports)
        self.releases = GangReleases(cluster, self._queue, state)
        self.attempt = GroupAttempts(attempts, state, self.preemptions, self.reports, self.releases).attempt

    def tick(self, now: int) -> list[Action]:
        """Do what is due."""
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

    def came(self, pod: PodRecord, now: int) -> None:
        """Handle a pending pod that is observed for the first time: there may be enough pods now."""
        group = self._groups.of(pod) if self.concerns(pod) else None
        if group is not None and group.is_gang and not is_short(self._groups, group):
            self._wake(group.key, pod.uid, now)

    def assigned(self, pod: PodRecord, now: int) -> list[Action]:
        """Handle a pod on a node: the scheduler that bound it may have ended before it reported its group."""
        group = self.state.group(pod.pod_class.pod_group)
        return [] if group is None or not self.concerns(pod) else self.look_at(group, now)

    def look_at(self, group: PodGroup, now: int) -> list[Action]:
        """Report that a group was scheduled, if it was and is not reported."""
        if not self.is_on or self.reports.is_scheduled(group):
            return []
        bound = self.state.bound(group.key)
        if len(bound) < group.min_count or not self.concerns(bound[0]):
            return []
        self.releases.forget(group.key)
        return [*self.reports.report(group, "True", "Scheduled", "", now)]

    def left(self, pod: PodRecord, now: int) -> None:
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
        return self.is_on and (
            before.spec.priority != group.spec.priority
            or before.topology_key != group.topology_key
            or is_short(self._groups, group)
        )

    def group_changed(self, before: PodGroup | None, group: PodGroup, now: int) -> None:
        self.reports.seen(group)
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
        self._looked_at = (0, 0)

    def settle(self, now: int) -> list[Action]:
        """Check the gangs with waiting pods, if anything has changed."""
        if not self._bindings.gathered or self._looked_at == (self._bindings.moves, self._groups.version):
            return []
        actions: list[Action] = []
        for key, ready in self._waiting().items():
            actions += self._settle(key, ready, now)
        self._looked_at = (self._bindings.moves, self._groups.version)
        return actions

    def give_up(self, now: int) -> list[Action]:
        """Return the pods of gangs whose time is up to the queue."""
        actions: list[Action] = []
        while (key := self._deadlines.take_due(now)) is not None:
            actions += self._turn_back(key, self._waiting().get(key, []), now)
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
            return self._turn_back(key, ready, now)
        if sure < group.min_count:
            if key not in self._deadlines.times:
                # The group's timeout, or the profile's.
                plugin = self._state.plugin(ready[0].queued.record.scheduler_name)
                timeout_ns = group.schedule_timeout_ns
                self._deadlines.set(key, now + (plugin.schedule_timeout_ns if timeout_ns is None else timeout_ns))
            return []
        self._deadlines.set(key, None)
        actions: list[Action] = []
        for cycle in ready:
            uid = cycle.queued.record.uid
            actions += self._attempts.advance_binding(uid, self._bindings.bind_gang_member(uid, now), now)
        return [*actions, *self._reports.report(group, "True", "Scheduled", "", now)]

    def _turn_back(self, key: str, waiting: Sequence[BindingCycle], now: int) -> list[Action]:
        self._deadlines.set(key, None)
        status = Status(Code.UNSCHEDULABLE, (f"{UNSCHEDULABLE}, {WAITING}",), NAME)
        actions: list[Action] = []
        for cycle in waiting:
            actions += self._attempts.requeue_failed_binding(
                self._bindings.cancel(cycle.queued.record.uid, status), now, is_error=False
            )
        return actions
