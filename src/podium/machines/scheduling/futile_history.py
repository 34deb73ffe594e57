"""What is known of the preemptions for one owner's pods, or for one group's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.machines.scheduling.futile_notes import Round


@dataclass(slots=True)
class History:
    """The preemptions for an owner's, or a group's, pods since one of them last ran.

    ``rounds`` are by the uid of the preemptor, None where it is judged; ``lost`` are those of pods that their kubelets
    turned away, ``taken_up`` those that such pods carried when they were first seen. Of these somebody may have judged
    some before: ``judged_ns`` is when the last that was judged had begun. ``noted`` are the pods that carry a note,
    ``is_noted`` whether the last one says all there is. No pod of the owner preempts before ``until_ns``.
    """

    rounds: dict[str, Round | None] = field(default_factory=dict)
    lost: list[Round] = field(default_factory=list)
    taken_up: list[Round] = field(default_factory=list)
    judged_ns: int = 0
    noted: dict[str, PodRecord] = field(default_factory=dict)
    is_noted: bool = True
    futile: int = 0
    until_ns: int = 0

    def take_lost(self) -> list[Round]:
        """The rounds of pods that are no more, which are judged by whoever asks."""
        found = self.lost + [each for each in self.taken_up if each.began_ns > self.judged_ns]
        self.lost, self.taken_up = [], []
        return found

    def take_ended(self, cluster: Cluster, pods: Sequence[PodRecord]) -> dict[str, Round]:
        """By uid, the last rounds of some pods, if all the victims of all of these are gone; judged by whoever asks."""
        found = {pod.uid: last for pod in pods if (last := self.rounds.setdefault(pod.uid, None)) is not None}
        if not all(cluster.placed.keys().isdisjoint(last.victims) for last in found.values()):
            return {}
        self.rounds.update(dict.fromkeys(found))
        return found
