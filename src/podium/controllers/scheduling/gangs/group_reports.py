"""The progress of PodGroups, their condition PodGroupScheduled, and the release of incomplete gangs.

A gang may become incomplete after the decision: a binding is refused, a kubelet rejects a pod, a node is lost. Its pods
then hold capacity in vain, and two such gangs may block each other. After a while they are evicted, and the gang waits
as a whole. Source: pkg/scheduler/schedule_one_podgroup.go (updatePodGroupCondition): a group that was scheduled once
stays so.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podium.api.disruption_policy import SCHEDULER
from podium.api.meta import plain
from podium.api.pod_group import SCHEDULED, Condition, PodGroup
from podium.api.times import format_duration, format_time
from podium.cluster.cluster import Cluster
from podium.cluster.nominations import PodGroups
from podium.cluster.pods import PodRecord
from podium.controllers.actions import GANG_RELEASE, Action, Evict, PatchObject, Rationale, Record
from podium.controllers.deadlines import Deadlines
from podium.controllers.observations import ActionFinished, Answer
from podium.controllers.scheduling.binding_cycles import BindingCycles
from podium.controllers.scheduling.binding_stages import BindingStage
from podium.controllers.scheduling.pod_reports import PendingWrites
from podium.controllers.scheduling.queue.queue import SchedulingQueue
from podium.framework.runner import Runner
from podium.plugins.gang_scheduling import GangScheduling

CAUSE = "GangScheduling"


class GangState:
    """Which pods of a group are placed, bound, or in a binding cycle.

    ``leaders`` are, by the group's key, the pods (uids) for which the group's victims are being deleted. ``plugins``
    are, by scheduler name, those of the profiles that schedule groups.
    """

    def __init__(self, cluster: Cluster, bindings: BindingCycles, runners: Mapping[str, Runner]) -> None:
        self._cluster = cluster
        self._bindings = bindings
        self.group = cluster.pod_groups.by_key.get
        """Returns a group by key, or None."""
        self.leaders: dict[str, str] = {}
        plugins = ((name, plugin) for name, runner in runners.items() for plugin in runner.profile.pre_enqueue)
        self.plugins = {name: plugin for name, plugin in plugins if isinstance(plugin, GangScheduling)}

    def concerns(self, pod: PodRecord) -> bool:
        """Return whether a pod is scheduled with the others of its group."""
        return bool(self.plugins) and bool(pod.pod_class.pod_group) and pod.scheduler_name in self.plugins

    def placed(self, key: str) -> list[PodRecord]:
        """Return the pods that are on a node or assumed there, and not terminating."""
        placed = self._cluster.placed
        members = self._cluster.pod_groups.members(key)
        return [placed[uid] for uid, pod in members.items() if uid in placed and not pod.terminating]

    def bound(self, key: str) -> list[PodRecord]:
        """Return the placed pods that are bound, or whose binding was requested."""
        cycles = ((pod, self._bindings.find(pod.uid)) for pod in self.placed(key))
        return [pod for pod, cycle in cycles if cycle is None or cycle.stage.is_sent]

    def coming(self, key: str) -> int:
        """Return the number of pods in earlier stages of a binding cycle."""
        stages = map(self._bindings.stage, self._cluster.pod_groups.members(key))
        return sum(stage in (BindingStage.PERMIT, BindingStage.PRE_BIND, BindingStage.PREPARE) for stage in stages)


def is_short(groups: PodGroups, group: PodGroup) -> bool:
    """Return whether too few pods of a gang exist for an attempt."""
    return group.is_gang and groups.live(group.key) < group.min_count


class GroupReports:
    """The conditions of groups as last written; a failed write is sent again."""

    def __init__(self) -> None:
        self._writes: PendingWrites[Condition, Condition] = PendingWrites()
        self.next_deadline = self._writes.next_deadline

    def report(self, group: PodGroup, status: str, reason: str, message: str, now: int) -> list[PatchObject]:
        """Report whether a group was scheduled, unless the API shows that or the group was scheduled before."""
        known = self._known(group)
        if known is not None and known.status == "True" and status != "True":
            return []
        is_same = known is not None and known.status == status
        since = known.last_transition_time if known is not None and is_same else None
        new = Condition(
            type=SCHEDULED,
            status=status,
            reason=reason,
            message=message,
            observed_generation=group.metadata.generation,
            last_transition_time=since or format_time(now),
        )
        if known is not None and msgspec.structs.replace(known, last_transition_time=new.last_transition_time) == new:
            return []
        return [self._write(group, new)]

    def is_scheduled(self, group: PodGroup) -> bool:
        """Return whether the API shows, or will show, that the group was scheduled."""
        known = self._known(group)
        return known is not None and known.status == "True"

    def _known(self, group: PodGroup) -> Condition | None:
        return self._writes.written.get(group.key, group.status.condition(SCHEDULED))

    def on_update(self, group: PodGroup) -> None:
        """Handle the observed state of a group."""
        if group.key in self._writes.written:
            self._writes.see(group.key, group.status.condition(SCHEDULED), group.metadata.resource_version)

    def on_finished(self, action: PatchObject, finished: ActionFinished, now: int) -> None:
        """Handle the answer to a write; a failed one is sent again, unless the group is gone."""
        written = self._writes.written.get(action.key)
        if written is None:
            return
        if finished.problem is None:
            # An answer to an earlier write has another condition.
            if finished.written is not None and action.patch["status"]["conditions"][-1] == plain(written):
                self._writes.on_written(action.key, finished.written)
        elif finished.answer is Answer.GONE:
            self._writes.forget(action.key)
        else:
            self._writes.fail(action.key, written, now)

    def take_due(self, groups: dict[str, PodGroup], now: int) -> list[PatchObject]:
        """Return the failed writes that are due, about groups that still exist."""
        due, written = self._writes.take_due(now), self._writes.written
        return [self._write(groups[key], each) for key, each in due if key in groups and key not in written]

    def forget(self, key: str) -> None:
        self._writes.forget(key)
        self._writes.forget_failure(key)

    def _write(self, group: PodGroup, condition: Condition) -> PatchObject:
        self._writes.put(group.key, condition)
        self._writes.forget_failure(group.key)
        others = [other for other in group.status.conditions if other.type != SCHEDULED]
        status = {"conditions": [plain(each) for each in (*others, condition)]}
        return PatchObject("PodGroup", group.key, group.metadata.uid, {"status": status}, CAUSE, "status")


_TOO_MANY = 429
_LATER = (Answer.PASSING, Answer.UNKNOWN)

RELEASE_REASON = "GangReleased"
RELEASE_RULE = "an incomplete gang releases its nodes"


class GangReleases:
    """Evicts the pods of gangs that stay incomplete for too long."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, state: GangState) -> None:
        self._cluster = cluster
        self._queue = queue
        self._state = state
        self._deadlines: Deadlines[str] = Deadlines()
        self.next_deadline = self._deadlines.next_time
        # The gangs whose pods were evicted before, and still have some; another try would be refused again.
        self._asked: set[str] = set()

    def note(self, key: str, scheduler_name: str, now: int) -> None:
        """Start the time of a gang that is incomplete, with some pods placed and one that fits nowhere."""
        after_ns = self._state.plugins[scheduler_name].release_after_ns
        if after_ns is None or not self._is_in_part(key):
            self.forget(key)
        elif key not in self._deadlines.times:
            self._deadlines.set(key, now + after_ns)

    def forget(self, key: str) -> None:
        """Forget a gang that is complete, has no placed pods, or is gone."""
        self._deadlines.set(key, None)
        self._asked.discard(key)

    def take_due(self, now: int) -> list[Action]:
        """Evict the pods of gangs that are still incomplete after their time. Refusals are retried."""
        actions: list[Action] = []
        while (key := self._deadlines.take_due(now)) is not None:
            # The time limit is that of the profile of a pending pod.
            members = self._cluster.pod_groups.members(key).items()
            pending = (pod for uid, pod in members if uid in self._queue.uids and self._state.concerns(pod))
            first = next(pending, None)
            after_ns = None if first is None else self._state.plugins[first.scheduler_name].release_after_ns
            if after_ns is not None and self._is_in_part(key):
                actions += self._release(key, after_ns, now)
            else:
                self.forget(key)
        return actions

    def on_finished(self, action: Evict, finished: ActionFinished) -> None:
        """Handle the answer to an eviction; one that no budget refused may succeed the next time."""
        pod, problem = self._cluster.placed.get(action.uid), finished.problem
        if pod is None or problem is None or problem.cause:
            return
        if finished.answer in _LATER or problem.code == _TOO_MANY:
            self._asked.discard(pod.pod_class.pod_group)

    @property
    def keeps_alive(self) -> bool:
        """Return whether a release is due that was not tried before, or may succeed now."""
        return len(self._deadlines.times) > len(self._asked)

    def _release(self, key: str, after_ns: int, now: int) -> list[Action]:
        self._deadlines.set(key, now + after_ns)
        self._asked.add(key)
        held = self._state.bound(key)
        message = (
            f"{len(held):,} pods of the gang {key} have nodes, too few of it, and no place was found for another one "
            f"for {format_duration(after_ns)}: it releases its nodes"
        )
        rationale = Rationale(RELEASE_RULE, message)
        actions: list[Action] = []
        for pod in held:
            actions.append(Record(pod.key, pod.uid, "Warning", RELEASE_REASON, message, pod.node_name))
            actions.append(Evict(pod.key, pod.uid, GANG_RELEASE, SCHEDULER, rationale=rationale))
        return actions

    def _is_in_part(self, key: str) -> bool:
        group = self._state.group(key)
        return group is not None and group.is_gang and 0 < len(self._state.bound(key)) < group.min_count
