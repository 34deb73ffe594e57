"""Pods that are victims together or not at all: those of a group that says so, wherever they run.

Source: pkg/scheduler/framework/preemption/types.go (victim: the pods of a PodGroup whose disruption mode is the group
are one); the API's PodGroup, `spec.disruptionMode`.
"""

from __future__ import annotations

from typing import Protocol

from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord


class Together(Protocol):
    """Knows whose disruption is the disruption of a whole group."""

    def group_of(self, pod: PodRecord) -> str:
        """The group with which a pod goes, "" for one that goes alone."""
        ...

    def slots_of(self, group: str) -> Int64s:
        """The slots of the group's pods that are on nodes, or bound to unknown ones."""
        ...

    def groups(self) -> list[str]:
        """The groups that go as a whole and have a pod on a node, by name."""
        ...

    def priority_of(self, group: str) -> int | None:
        """The priority that a group states for itself; None where its pods' count."""
        ...
