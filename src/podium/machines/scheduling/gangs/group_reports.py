"""What the API is told about PodGroups: their condition PodGroupScheduled.

Source: pkg/scheduler/schedule_one_podgroup.go (updatePodGroupCondition): a group that was scheduled once stays so.
"""

from __future__ import annotations

import msgspec

from podium.api.meta import Raw, plain
from podium.api.pod_group import SCHEDULED, Condition, PodGroup
from podium.api.resource_version import is_comparable, is_older
from podium.api.times import format_time
from podium.machines.actions import PatchObject
from podium.machines.answers import Answer
from podium.machines.observations import Answered
from podium.machines.parts.deadlines import Deadlines
from podium.machines.scheduling.queue.queued_pod import SECOND_NS

RETRY_NS = SECOND_NS
CAUSE = "GangScheduling"


class GroupReports:
    """The conditions of groups, as they were written last; a write that failed is sent again."""

    def __init__(self) -> None:
        # By the group's key: what was written, until the API shows it.
        self._written: dict[str, Condition] = {}
        # The version of the group that was written, once that is answered.
        self._versions: dict[str, str] = {}
        self._failed: dict[str, Condition] = {}
        self._retries: Deadlines[str] = Deadlines()

    def report(self, group: PodGroup, status: str, reason: str, message: str, now: int) -> list[PatchObject]:
        """Say whether a group was scheduled, unless the API shows that, or soon will, or it was scheduled before."""
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
        """Whether the API says, or soon will, that the group was scheduled."""
        known = self._written.get(group.key, group.status.condition(SCHEDULED))
        return known is not None and known.status == "True"

    def seen(self, group: PodGroup) -> None:
        """The API shows a group: as it was written, or as somebody else has written it since."""
        written = self._written.get(group.key) if self._written else None
        if written is None:
            return
        told = self._versions.get(group.key)
        is_there = written == group.status.condition(SCHEDULED)
        if is_there or (told is not None and not is_older(group.metadata.resource_version, told)):
            self._forget_written(group.key)

    def answered(self, answered: Answered, now: int) -> None:
        """A write was carried out, or was not: then it is sent again, unless the group is gone."""
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
        """The writes that failed and are to be sent again, about groups that are still there."""
        due: list[PatchObject] = []
        while (key := self._retries.take_due(now)) is not None:
            condition, group = self._failed.pop(key), groups.get(key)
            if group is not None and key not in self._written:
                due.append(self._write(group, condition))
        return due

    def next_deadline(self) -> int | None:
        """When the first write is to be sent again; None if none is."""
        return self._retries.next_time()

    def forget(self, key: str) -> None:
        """A group is gone."""
        self._forget_written(key)
        if self._failed.pop(key, None) is not None:
            self._retries.set(key, None)

    def _tell(self, action: PatchObject, raw: Raw | None) -> None:
        """An answer tells the version that was written; that of an earlier write says nothing of the last one."""
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
    """When the condition came to its status: when it was said first."""
    if known is not None and known.status == status and known.last_transition_time:
        return known.last_transition_time
    return format_time(now)
