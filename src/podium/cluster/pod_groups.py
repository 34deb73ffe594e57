"""The groups of pods that are scheduled together, and which pods belong to each."""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.pod_group import PodGroup
from podium.cluster.pods import PodRecord

_NOBODY: Mapping[str, PodRecord] = {}


class PodGroups:
    """The PodGroups by key, and the pods that name each, whether it is there or not.

    The pods are those that have not ended, by uid, as they were last read; the cluster says which are on a node.
    """

    def __init__(self) -> None:
        self.by_key: dict[str, PodGroup] = {}
        # How often a group or its pods have changed.
        self.version = 0
        # Whether any profile schedules pods by their groups; otherwise these mean nothing.
        self.are_scheduled = False
        self._stating: set[str] = set()
        self._members: dict[str, dict[str, PodRecord]] = {}
        self._leaving: dict[str, set[str]] = {}
        self._group_of: dict[str, str] = {}

    def put(self, group: PodGroup) -> None:
        """Add or replace a group."""
        self.by_key[group.key] = group
        (self._stating.discard if group.spec.priority is None else self._stating.add)(group.key)
        self.version += 1

    def remove(self, key: str) -> None:
        """Forget a group; its pods go on naming it."""
        self.by_key.pop(key, None)
        self._stating.discard(key)
        self.version += 1

    def put_pod(self, record: PodRecord) -> None:
        """Take in a reading of a pod, which may name another group than before, or none."""
        uid, key = record.uid, record.pod_class.pod_group
        if self._group_of.get(uid, key) != key:
            self.drop_pod(uid)
        if not key:
            return
        self.version += 1
        self._group_of[uid] = key
        self._members.setdefault(key, {})[uid] = record
        if record.terminating:
            self._leaving.setdefault(key, set()).add(uid)

    def drop_pod(self, uid: str) -> None:
        """A pod has ended, or is no more."""
        key = self._group_of.pop(uid, None)
        if key is None:
            return
        self.version += 1
        members, leaving = self._members[key], self._leaving.get(key)
        del members[uid]
        if not members:
            del self._members[key]
        if leaving is not None:
            leaving.discard(uid)
            if not leaving:
                del self._leaving[key]

    def members(self, key: str) -> Mapping[str, PodRecord]:
        """The pods that name a group, by uid, in the order in which they were first seen."""
        return self._members.get(key, _NOBODY)

    def live(self, key: str) -> int:
        """How many pods of a group are not on their way out."""
        return len(self._members.get(key, ())) - len(self._leaving.get(key, ()))

    @property
    def state_priorities(self) -> bool:
        """Whether some group that is scheduled as one states a priority."""
        return self.are_scheduled and bool(self._stating)

    def stated_priority(self, key: str) -> int | None:
        """The priority that a group states; None where it states none, or groups mean nothing."""
        if not self.are_scheduled or key not in self._stating:
            return None
        return self.by_key[key].spec.priority

    def priority_of(self, pod: PodRecord) -> int:
        """What counts where others would take a pod's room: its own priority, or its group's where that is higher.

        A group takes room by the priority that it states. If its pods did not hold it by the same, whoever went for
        them would take it back, and they again, for ever.

        Source: pkg/scheduler/framework/preemption/types.go (NewPodVictim, by getPodPriority).
        """
        if not self._stating:
            return pod.priority
        stated = self.stated_priority(pod.pod_class.pod_group)
        return pod.priority if stated is None else max(pod.priority, stated)

    def of(self, pod: PodRecord) -> PodGroup | None:
        """The group that a pod names, None where it names none, or one that is not there."""
        key = pod.pod_class.pod_group
        return self.by_key.get(key) if key else None
