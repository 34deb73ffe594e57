"""What is to be found out about the places of a group's pods."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from podium.api.pod_group import PodGroup
from podium.cluster.pods import PodRecord

Alike = Callable[[PodRecord], Hashable | None]
"""What pods have in common of which an attempt says the same; None for a pod that is like no other."""


def unlike(_pod: PodRecord) -> None:
    """Each pod is tried by itself."""


@dataclass(frozen=True, slots=True)
class GroupTrial:
    """The pods of a group that are to get places together, and how they are tried.

    ``members`` are pending, in their order; ``needed`` of them have to fit, beside those that are ``placed`` already.
    With a ``topology_key`` all have to be in one of its domains. ``seed`` and ``cursor`` are as in
    `podium.decide.placement.place`, and so is ``detailed``. Where too few fit, another arrangement is looked for within
    ``most_steps``, 0 for none.
    """

    members: Sequence[PodRecord]
    needed: int
    topology_key: str = ""
    placed: Sequence[PodRecord] = ()
    seed: int = 0
    cursor: int = 0
    alike: Alike = unlike
    detailed: bool = False
    most_steps: int = 0

    @classmethod
    def of(cls, group: PodGroup, members: Sequence[PodRecord], placed: Sequence[PodRecord]) -> GroupTrial:
        """The pods of a group that are pending, beside those that have a node."""
        needed = max(group.min_count - len(placed), 0)
        return cls(tuple(members), needed, group.topology_key, tuple(placed))
