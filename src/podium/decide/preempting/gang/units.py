"""Who may be a victim for a gang, in units, a pod or the pods of a group that go together, and who goes along.

Who goes along is the same as where one pod preempts (`podium.decide.preempting.wide.dependents`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.ranking import Ranking
from podium.decide.preempting.trials import VictimFilter
from podium.decide.preempting.whole_groups import WholeGroups
from podium.decide.preempting.wide.dependents import Dependents
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
        *,
        with_dependents: bool = False,
    ) -> None:
        """``asker`` stands for the gang: it has its priority. ``with_dependents``: who depends on victims is one."""
        self._cluster = cluster
        self._take = take = takeable(cluster, ranking, asker, may_disrupt)
        wholes = WholeGroups(cluster)
        self._wholes = self._found(wholes, asker.priority)
        self._whole_of = {pod.uid: whole for whole in self._wholes.values() for pod in whole.pods}
        has_wholes = any(len(whole.pods) > 1 or not whole.may_go for whole in self._wholes.values())
        dependents = Dependents(cluster, take, by_affinity=with_dependents, wholes=wholes, priority=asker.priority)
        depended_on = np.flatnonzero(dependents.by_affinity(np.arange(len(take)))).tolist()
        # Whether pods may go along with those of other units, and whether any pods go together at all.
        self.has_dependents = bool(depended_on)
        self.go_along = has_wholes or self.has_dependents
        self._dependents = dependents.held()
        self._pods = [cluster.pods.record(slot) for slot in take.slots.tolist()] if self.has_dependents else []
        self._place_of = {pod.uid: place for place, pod in enumerate(self._pods)}
        self._depended_on = frozenset(depended_on)
        # Who may not be a victim, for one who depends on it may not.
        self._needed = {self._pods[place].uid for place in depended_on if dependents.of([place]) is None}

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
        return pod.uid not in self._needed and (whole is None or whole.may_go)

    def closed(self, pods: Iterable[PodRecord]) -> list[PodRecord] | None:
        """Units that may go, with all who depend on them; None where one of these may not be a victim."""
        pods = list(pods)
        places = sorted(self._place_of[pod.uid] for pod in pods) if self.has_dependents else []
        if self._depended_on.isdisjoint(places):
            return pods
        found = self._dependents.of(places)
        return None if found is None else [self._pods[place] for place in sorted(found)]

    def whom(self, victims: Iterable[PodRecord]) -> dict[str, str]:
        """By uid, as they require to be near it: with which other victim (its key) some go."""
        found: dict[str, str] = {}
        places = {self._place_of[pod.uid] for pod in victims} if self.has_dependents else set()
        for place in sorted(places & self._dependents.depend()) if places else ():
            along = self._dependents.of(sorted(places - {place}))
            reason = None if along is None else along.get(place)
            if reason is not None and reason.keys:
                found[self._pods[place].uid] = self._pods[reason.of].key
        return found

    def is_closed(self, pods: list[PodRecord]) -> bool:
        """Whether nobody else goes along with some units."""
        if not self.has_dependents:
            return True
        found = self.closed(pods)
        return found is not None and len(found) == len(pods)

    def gone(self, units: Iterable[Unit]) -> list[PodRecord]:
        """All who go where these units do, the most important first. These and who goes along may all go."""
        pods = self.ordered(pod for unit in units for pod in unit)
        found = self.closed(pods)
        if found is None:
            raise AssertionError("a pod goes that may not be a victim")
        return found

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


def union(units: Iterable[Unit]) -> list[PodRecord]:
    """The pods of some units."""
    return [pod for unit in units for pod in unit]


def filter_of(units: Units, cluster: Cluster, further: VictimFilter | None) -> VictimFilter | None:
    """Lets be victims whom ``further`` does (None: everybody), and all who go along with whom may go."""
    if not units.go_along:
        return further

    def allowed(pod: PodRecord, slots: Int64s) -> Bools:
        found = np.ones(len(slots), dtype=np.bool_) if further is None else further(pod, slots)
        records = map(cluster.pods.record, slots.tolist())
        alone = np.fromiter(map(units.may_go, records), dtype=np.bool_, count=len(slots))
        both: Bools = found & alone
        return both

    return allowed
