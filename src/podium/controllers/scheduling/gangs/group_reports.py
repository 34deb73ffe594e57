"""The condition PodGroupScheduled of PodGroups, and the release of incomplete gangs.

A gang may become incomplete after the decision: a binding is refused, a kubelet rejects a pod, a node is lost. Its pods
then hold capacity in vain, and two such gangs may block each other. After a while they are evicted, and the gang waits
as a whole. Source: pkg/scheduler/schedule_one_podgroup.go (updatePodGroupCondition): a group that was scheduled once
stays so.
"""

from __future__ import annotations

import msgspec

from podium.api.disruption_policy import SCHEDULER
from podium.api.meta import Raw, plain
from podium.api.pod_group import SCHEDULED, Condition, PodGroup
from podium.api.resource_version import is_comparable, is_older
from podium.api.times import format_duration, format_time
from podium.cluster.cluster import Cluster
from podium.controllers.actions import GANG_RELEASE, Action, Evict, PatchObject, Rationale, Record
from podium.controllers.deadlines import Deadlines
from podium.controllers.observations import Answer, Answered
from podium.controllers.scheduling.gangs.gang_state import GangState
from podium.controllers.scheduling.queue.queue import SchedulingQueue
from podium.controllers.scheduling.queue.queued_pod import SECOND_NS

RETRY_NS = SECOND_NS
CAUSE = "GangScheduling"


class GroupReports:
    """The conditions of groups as last written; a failed write is sent again."""

    def __init__(self) -> None:
        # By the group's key: the written condition, until the API shows it.
        self._written: dict[str, Condition] = {}
        # The group's version after the write, once it is answered.
        self._versions: dict[str, str] = {}
        self._failed: dict[str, Condition] = {}
        self._retries: Deadlines[str] = Deadlines()

    def report(self, group: PodGroup, status: str, reason: str, message: str, now: int) -> list[PatchObject]:
        """Report whether a group was scheduled, unless the API shows that or the group was scheduled before."""
        shown = group.status.condition(SCHEDULED)
        known = self._written.get(group.key, shown)
        if known is not None and known.status == "True" and status != "True":
            return []
        new = Condition(
            type=SCHEDULED,
            status=status,
            reason=reason,
            message=message,
            observed_generation=group.metadata.generation,
            last_transition_time=_transition(known, status, now),
        )
        if known is not None and msgspec.structs.replace(known, last_transition_time=new.last_transition_time) == new:
            return []
        return [self._write(group, new)]

    def is_scheduled(self, group: PodGroup) -> bool:
        """Return whether the API shows, or will show, that the group was scheduled."""
        known = self._written.get(group.key, group.status.condition(SCHEDULED))
        return known is not None and known.status == "True"

    def seen(self, group: PodGroup) -> None:
        """Handle the observed state of a group."""
        written = self._written.get(group.key) if self._written else None
        if written is None:
            return
        told = self._versions.get(group.key)
        is_there = written == group.status.condition(SCHEDULED)
        if is_there or (told is not None and not is_older(group.metadata.resource_version, told)):
            self._forget_written(group.key)

    def answered(self, answered: Answered, now: int) -> None:
        """Handle the answer to a write; a failed one is sent again, unless the group is gone."""
        action = answered.action
        if not isinstance(action, PatchObject):
            raise TypeError(f"{type(action).__name__} reports nothing about a group")
        written = self._written.get(action.key)
        if written is None:
            return
        if answered.problem is None:
            self._tell(action, answered.written)
            return
        self._forget_written(action.key)
        if answered.answer is not Answer.GONE:
            self._failed[action.key] = written
            self._retries.set(action.key, now + RETRY_NS)

    def take_due(self, groups: dict[str, PodGroup], now: int) -> list[PatchObject]:
        """Return the failed writes that are due, about groups that still exist."""
        due: list[PatchObject] = []
        while (key := self._retries.take_due(now)) is not None:
            condition, group = self._failed.pop(key), groups.get(key)
            if group is not None and key not in self._written:
                due.append(self._write(group, condition))
        return due

    def next_deadline(self) -> int | None:
        """Return when the first write is due again; None if none is."""
        return self._retries.next_time()

    def forget(self, key: str) -> None:
        """Forget a group that was deleted."""
        self._forget_written(key)
        if self._failed.pop(key, None) is not None:
            self._retries.set(key, None)

    def _tell(self, action: PatchObject, raw: Raw | None) -> None:
        """Note the version in an answer, if it belongs to the last write."""
        version = "" if raw is None else str(raw["metadata"].get("resourceVersion", ""))
        is_last = action.patch["status"]["conditions"][-1] == plain(self._written[action.key])
        if is_last and is_comparable(version):
            self._versions[action.key] = version

    def _forget_written(self, key: str) -> None:
        if self._written.pop(key, None) is not None:
            self._versions.pop(key, None)

    def _write(self, group: PodGroup, condition: Condition) -> PatchObject:
        key = group.key
        self._written[key] = condition
        self._versions.pop(key, None)
        if self._failed.pop(key, None) is not None:
            self._retries.set(key, None)
        others = [other for other in group.status.conditions if other.type != SCHEDULED]
        status = {"conditions": [plain(each) for each in (*others, condition)]}
        return PatchObject("PodGroup", key, group.metadata.uid, {"status": status}, CAUSE, "status")


def _transition(known: Condition | None, status: str, now: int) -> str | None:
    """Return when the condition got its status."""
    if known is not None and known.status == status and known.last_transition_time:
        return known.last_transition_time
    return format_time(now)


_TOO_MANY = 429
_LATER = (Answer.PASSING, Answer.UNKNOWN)

RELEASE_REASON = "GangReleased"
RELEASE_RULE = "a gang that is not whole gives its nodes back"


class GangReleases:
    """Evicts the pods of gangs that stay incomplete for too long."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, state: GangState) -> None:
        self._cluster = cluster
        self._queue = queue
        self._state = state
        self._deadlines: Deadlines[str] = Deadlines()
        # The gangs whose pods were evicted before, and still have some; another try would be refused again.
        self._asked: set[str] = set()

    def note(self, key: str, scheduler_name: str, now: int) -> None:
        """Start the time of a gang that is incomplete, with some pods placed and one that fits nowhere."""
        after_ns = self._state.plugin(scheduler_name).release_after_ns
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
            after_ns = self._after_ns(key)
            if after_ns is not None and self._is_in_part(key):
                actions += self._release(key, after_ns, now)
            else:
                self.forget(key)
        return actions

    def answered(self, action: Evict, answered: Answered) -> None:
        """Handle the answer to an eviction; one that no budget refused may succeed the next time."""
        pod, problem = self._cluster.placed.get(action.uid), answered.problem
        if pod is None or problem is None or problem.cause:
            return
        if answered.answer in _LATER or problem.code == _TOO_MANY:
            self._asked.discard(pod.pod_class.pod_group)

    def next_deadline(self) -> int | None:
        """Return when the first gang's time is up; None if there is none."""
        return self._deadlines.next_time()

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
            f"for {format_duration(after_ns)}: it gives its nodes back"
        )
        rationale = Rationale(RELEASE_RULE, message)
        actions: list[Action] = []
        for pod in held:
            actions.append(Record(pod.key, pod.uid, "Warning", RELEASE_REASON, message, pod.node_name))
            actions.append(Evict(pod.key, pod.uid, GANG_RELEASE, SCHEDULER, rationale=rationale))
        return actions

    def _after_ns(self, key: str) -> int | None:
        """Return the time limit of the gang's pending pods' profile; None without pending pods."""
        for uid, pod in self._cluster.pod_groups.members(key).items():
            if uid in self._queue.uids and self._state.concerns(pod):
                return self._state.plugin(pod.scheduler_name).release_after_ns
        return None

    def _is_in_part(self, key: str) -> bool:
        group = self._state.group(key)
        return group is not None and group.is_gang and 0 < len(self._state.bound(key)) < group.min_count
