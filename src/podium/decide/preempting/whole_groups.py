"""Groups whose pods are victims together or not at all, wherever they run.

Source: pkg/scheduler/framework/preemption/types.go (victim: the pods of a PodGroup whose `disruptionMode` is PodGroup
are one, with the priority of the group).
"""

from __future__ import annotations

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord


class WholeGroups:
    """The groups that say so and have pods on nodes, by key, in the cluster as it was when this was made."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._classes: dict[str, list[int]] = {}
        groups = cluster.pod_groups.by_key
        for class_id in sorted(cluster.pods.of_class) if any(group.is_one_victim for group in groups.values()) else ():
            key = cluster.classes[class_id].pod_group
            if key in groups and groups[key].is_one_victim:
                self._classes.setdefault(key, []).append(class_id)
        self._key_of_class = {class_id: key for key, ids in self._classes.items() for class_id in ids}

    def __bool__(self) -> bool:
        return bool(self._classes)

    @property
    def keys(self) -> list[str]:
        """The groups' keys, ascending."""
        return sorted(self._classes)

    @property
    def classes(self) -> list[int]:
        """The ids of the classes of their pods."""
        return [class_id for ids in self._classes.values() for class_id in ids]

    def key_of(self, pod: PodRecord) -> str:
        """The group with which a pod goes; "" for one that goes alone."""
        key = pod.pod_class.pod_group
        return key if key in self._classes else ""

    def key_of_class(self, class_id: int) -> str:
        """The same for pods of a class, by its id."""
        return self._key_of_class.get(class_id, "")

    def slots_of(self, key: str) -> Int64s:
        """The slots of a group's pods."""
        return self._cluster.pods.slots_of(self._classes[key])

    def is_below(self, key: str, priority: int) -> bool:
        """Whether the group, where it states a priority, is less important than one who would take it."""
        stated = self._cluster.pod_groups.by_key[key].spec.priority
        return stated is None or stated < priority


def running_members(cluster: Cluster, key: str) -> frozenset[str]:
    """The pods (uids) of a group that have nodes."""
    classes = [class_id for class_id in cluster.pods.of_class if cluster.classes[class_id].pod_group == key]
    return frozenset(cluster.pods.record(slot).uid for slot in cluster.pods.slots_of(classes).tolist())
