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
        self._members: dict[str, dict[str, PodRecord]] = {}
        self._group_of: dict[str, str] = {}

    def put(self, group: PodGroup) -> None:
        """Add or replace a group."""
        self.by_key[group.key] = group

    def remove(self, key: str) -> None:
        """Forget a group; its pods go on naming it."""
        self.by_key.pop(key, None)

    def put_pod(self, record: PodRecord) -> None:
        """Take in a reading of a pod, which may name another group than before, or none."""
        key, before = record.pod_class.pod_group, self._group_of.get(record.uid)
        if before is not None and before != key:
            self.drop_pod(record.uid)
        if key:
            self._group_of[record.uid] = key
            self._members.setdefault(key, {})[record.uid] = record

    def drop_pod(self, uid: str) -> None:
        """A pod has ended, or is no more."""
        key = self._group_of.pop(uid, None)
        if key is not None:
            members = self._members[key]
            del members[uid]
            if not members:
                del self._members[key]

    def members(self, key: str) -> Mapping[str, PodRecord]:
        """The pods that name a group, by uid, in the order in which they were first seen."""
        return self._members.get(key, _NOBODY)

    def of(self, pod: PodRecord) -> PodGroup | None:
        """The group that a pod names, None where it names none, or one that is not there."""
        key = pod.pod_class.pod_group
        return self.by_key.get(key) if key else None
