"""Who may be a victim for a gang, in units: a pod, or the pods of a group that go together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.ranking import Ranking
from podium.decide.preempting.trials import VictimFilter
from podium.decide.preempting.whole_groups import WholeGroups
from podium.decide.preempting.wide.potential import NOBODY, takeable

Unit = tuple[PodRecord, ...]
"""Pods that are victims together, the most important first."""


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A group that goes as a whole: its pods, and whether they may be victims."""

    pods: Unit
    may_go: bool


class Units:
    """The units that a gang may take, in the cluster as it was when they were asked for."""

    def __init__(
        self,
        cluster: Cluster,
        ranking: Ranking,
        asker: PodRecord,
        may_disrupt: VictimFilter | None,
    ) -> None:
        """``asker`` stands for the gang: it has its priority."""
        self._cluster = cluster
        self._take = takeable(cluster, ranking, asker, may_disrupt)
        self._wholes = self._found(WholeGroups(cluster), asker.priority)
        self.has_wholes = any(len(whole.pods) > 1 or not whole.may_go for whole in self._wholes.values())
        self._whole_of = {pod.uid: whole for whole in self._wholes.values() for pod in whole.pods}

    def __len__(self) -> int:
        """So many units, or more."""
        return len(self._take)

    def all(self) -> list[Unit]:
        """All units, by their most important pods."""
        pods = list(map(self._cluster.pods.record, self._take.slots.tolist()))
        return self.of(pods)

    def few(self, most: int) -> list[Unit] | None:
        """All units, None where there are more than ``most``."""
        along = sum(len(whole.pods) for whole in self._wholes.values())
        if len(self) - along > most:
            return None
        units = self.all()
        return units if len(units) <= most else None

    def of(self, pods: Iterable[PodRecord]) -> list[Unit]:
        """The units of some pods that may be victims, in that order; a group once."""
        units: list[Unit] = []
        seen: set[str] = set()
        for pod in pods:
            whole = self._whole_of.get(pod.uid)
            if whole is not None and not whole.may_go:
                continue
            unit = (pod,) if whole is None else whole.pods
            if unit[0].uid not in seen:
                seen.add(unit[0].uid)
                units.append(unit)
        return units

    def may_go(self, pod: PodRecord) -> bool:
        """Whether a pod that may be a victim by itself may be one with those who go along."""
        whole = self._whole_of.get(pod.uid)
        return whole is None or whole.may_go

    def ordered(self, pods: Iterable[PodRecord]) -> list[PodRecord]:
        """Pods that may be victims, the most important first, each once."""
        index_of = self._take.index_of
        by_place = {int(index_of[pod.slot]): pod for pod in pods}
        return [by_place[place] for place in sorted(by_place)]

    def _found(self, groups: WholeGroups, priority: int) -> dict[str, Whole]:
        found = {}
        for key in groups.keys:
            slots = groups.slots_of(key)
            places = np.sort(self._take.index_of[slots])
            may_go = groups.is_below(key, priority) and not bool((places == NOBODY).any())
            if may_go:
                slots = self._take.slots[places]
            found[key] = Whole(tuple(map(self._cluster.pods.record, slots.tolist())), may_go)
        return found


def union(units: Sequence[Unit]) -> list[PodRecord]:
    """The pods of some units."""
    return [pod for unit in units for pod in unit]


def filter_of(units: Units, cluster: Cluster, further: VictimFilter | None) -> VictimFilter | None:
    """Lets be victims whom ``further`` does (None: everybody), and whose whole group may go."""
    if not units.has_wholes:
        return further

    def allowed(pod: PodRecord, slots: Int64s) -> Bools:
        found = np.ones(len(slots), dtype=np.bool_) if further is None else further(pod, slots)
        records = map(cluster.pods.record, slots.tolist())
        alone = np.fromiter(map(units.may_go, records), dtype=np.bool_, count=len(slots))
        both: Bools = found & alone
        return both

    return allowed
