"""All that a scheduler has for PodGroups, joined."""

from __future__ import annotations

from podium.api.pod_group import PodGroup
from podium.cluster.pod_groups import PodGroups
from podium.cluster.pods import PodRecord
from podium.machines.actions import Action, Evict
from podium.machines.observations import Answered
from podium.machines.parts.deadlines import earliest
from podium.machines.scheduling.gangs.attempting import Attempting
from podium.machines.scheduling.gangs.departures import Departures
from podium.machines.scheduling.gangs.gang_parts import GangParts
from podium.machines.scheduling.gangs.gang_state import GangState
from podium.machines.scheduling.gangs.group_attempts import GroupAttempts
from podium.machines.scheduling.gangs.group_preemptions import GroupPreemptions
from podium.machines.scheduling.gangs.group_reports import GroupReports
from podium.machines.scheduling.gangs.member_waits import MemberWaits
from podium.machines.scheduling.gangs.releases import Releases
from podium.machines.scheduling.queue.queued_pod import QueuedPod


class Gangs:
    """The groups whose pods the scheduler places together. Where no profile does so, nothing comes of any of it."""

    def __init__(self, parts: GangParts) -> None:
        cluster = parts.cluster
        self._bindings = parts.bindings
        self._groups = cluster.pod_groups
        self.state = GangState(cluster, parts.bindings, parts.runners)
        # Whether any profile places groups: a plain attribute, since it is asked for with each observation.
        self.is_on = self.state.is_on
        self.preemptions = GroupPreemptions(parts, self.state)
        self._reports = GroupReports()
        self._waits = MemberWaits(cluster, parts.queue, self.state)
        self._departures = Departures(cluster.pod_groups, parts.bindings, self.state, self._reports)
        self._releases = Releases(cluster, parts.queue, self.state)
        self._attempts = GroupAttempts(parts, self.state, self.preemptions, self._reports, self._releases)

    def concerns(self, pod: PodRecord) -> bool:
        """Whether a pod is placed with the others of its group."""
        return self.state.concerns(pod)

    def attempt(self, first: QueuedPod, attempting: Attempting, now: int) -> list[Action]:
        """Attempt all pods of a popped pod's group."""
        return self._attempts.attempt(first, attempting, now)

    def settle(self, attempting: Attempting, now: int) -> list[Action]:
        """After whatever happened: let those go together who wait for one another, or turn them back."""
        return self._departures.settle(attempting, now) if self._bindings.gathered else []

    def tick(self, attempting: Attempting, now: int) -> list[Action]:
        """Do what is due."""
        actions = self._departures.give_up(attempting, now)
        actions += self._releases.take_due(now)
        actions += self._reports.take_due(self._groups.by_key, now)
        return actions

    def next_deadline(self) -> int | None:
        """When `tick` next has something to do; None for never."""
        return earliest(
            (self._departures.next_deadline(), self._releases.next_deadline(), self._reports.next_deadline())
        )

    @property
    def has_news(self) -> bool:
        """Whether something will happen that has not happened before, though nobody else does anything."""
        return self._departures.next_deadline() is not None or self._releases.has_news

    def answered(self, answered: Answered, now: int) -> None:
        """A group's condition was written, or was not."""
        self._reports.answered(answered, now)

    def release_answered(self, action: Evict, answered: Answered) -> None:
        """A pod of a gang that gives its nodes back was evicted, or was not."""
        self._releases.answered(action, answered)

    def came(self, pod: PodRecord, now: int) -> None:
        """A pending pod is seen for the first time."""
        self._waits.came(pod, now)

    def assigned(self, pod: PodRecord, now: int) -> list[Action]:
        """The API shows a pod on a node: whoever had it bound may not have lived to say that its group is whole."""
        group = self.state.group(pod.pod_class.pod_group)
        return [] if group is None or not self.state.concerns(pod) else self.look_at(group, now)

    def look_at(self, group: PodGroup, now: int) -> list[Action]:
        """Say that a group was scheduled, where that is so and nobody said it."""
        if not self.is_on or self._reports.is_scheduled(group):
            return []
        bound = self.state.bound(group.key)
        if len(bound) < group.min_count or not self.state.concerns(bound[0]):
            return []
        self._releases.forget(group.key)
        return [*self._reports.report(group, "True", "Scheduled", "", now)]

    def left(self, pod: PodRecord, now: int) -> None:
        """A pod is gone, or is pending no more."""
        self._waits.left(pod, now)

    def is_short(self, pod: PodRecord) -> bool:
        """Whether there are too few pods of a pod's gang for another attempt."""
        group = self._groups.of(pod) if self.concerns(pod) else None
        return group is not None and _is_short(self._groups, group)

    def ends_plan(self, before: PodGroup, group: PodGroup) -> bool:
        """Whether what was planned for a group may not hold for it as it is now."""
        return self.is_on and (
            before.spec.priority != group.spec.priority
            or before.topology_key != group.topology_key
            or _is_short(self._groups, group)
        )

    def group_changed(self, before: PodGroup | None, group: PodGroup, now: int) -> None:
        """A group came, or changed."""
        self._reports.seen(group)
        self._waits.group_changed(before, group, now)

    def group_gone(self, group: PodGroup) -> None:
        """A group is no more."""
        self._reports.forget(group.key)
        self._releases.forget(group.key)
        self.state.leaders.pop(group.key, None)


def _is_short(groups: PodGroups, group: PodGroup) -> bool:
    return group.is_gang and groups.live(group.key) < group.min_count
