"""Who goes along with victims: pods whose required affinity they alone satisfy, and the rest of their groups.

A pod depends on those that all of its required terms select. As long as one of these is in its domain of each term's
topology key it stays; where the last one leaves, it is a victim as well, and then whoever depends on it. A pod that its
own terms select depends on nobody: it may be the first of its group. So does one whose affinity did not hold before.

Pods of a group that goes as a whole (`podium.decide.preempting.whole_groups`) go with one another.

Source: kube-scheduler-deep-dive.md ("if victim pod `server` has a required pod-affinity with a colocated victim pod
`database`, then default preemption should also remove `server` if it decides to remove `database`, but not vice
versa"); pkg/scheduler/framework/plugins/interpodaffinity/filtering.go (satisfyPodAffinity) for when affinity holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.marks import AFFINITY
from podium.cluster.matchers import Selected
from podium.decide.preempting.whole_groups import WholeGroups
from podium.decide.preempting.wide.potential import NOBODY, Takeable
from podium.decide.preempting.wide.sets import MemberSets


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Classes of pods (ids) that require the same terms, over these topology keys."""

    selected: Selected
    keys: tuple[str, ...]
    classes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a pod is a victim too: the one that left, and the topology keys; none for one of its group."""

    of: int
    keys: tuple[str, ...] = ()


class Dependents:
    """Who goes along with whom, in the cluster as it is: by affinity, where that is asked for, and with ``wholes``."""

    def __init__(
        self,
        cluster: Cluster,
        take: Takeable,
        *,
        by_affinity: bool = True,
        wholes: WholeGroups | None = None,
        priority: int = 0,
    ) -> None:
        """``priority`` is the preemptor's: groups that state one as high stay."""
        self._cluster = cluster
        self._take = take
        self._wholes = wholes or None
        self._priority = priority
        self._groups = _groups(cluster) if by_affinity else []
        # By the id of a class, the groups of those that depend on its pods.
        self._of_class: dict[int, list[_Group]] = {}
        for group in self._groups:
            for class_id in cluster.matcher(group.selected).classes:
                self._of_class.setdefault(class_id, []).append(group)
        self._slots: dict[Selected, Int64s] = {}

    def __bool__(self) -> bool:
        """Whether any pod may go along with another."""
        return bool(self._of_class) or self._wholes is not None

    def are_of(self, members: Int64s) -> Bools:
        """``[members]``: with which of the takeable pods others may go along."""
        classes = self._cluster.pods.pod_class[self._take.slots[members]]
        return np.isin(classes, [*self._of_class, *(self._wholes.classes if self._wholes is not None else ())])

    def closed(self, sets: MemberSets) -> MemberSets:
        """The same sets with all that depend on them."""
        concerned = np.zeros(len(sets), dtype=np.bool_)
        concerned[sets.owners[self.are_of(sets.members)]] = True
        if not concerned.any():
            return sets
        lists, allowed = [], sets.allowed.copy()
        for position in range(len(sets)):
            members = sets.members[sets.starts[position] : sets.starts[position + 1]]
            if concerned[position] and allowed[position]:
                found = self.of(members.tolist())
                allowed[position] = found is not None
                members = members if found is None else np.array(sorted(found), dtype=np.int64)
            lists.append(members)
        starts = np.concatenate([[0], np.cumsum([len(members) for members in lists])])
        return MemberSets(starts, np.concatenate(lists), allowed)

    def of(self, members: list[int]) -> dict[int, Reason | None] | None:
        """Some takeable pods with all that go along, and why; None where one of these may not be a victim."""
        gone: dict[int, Reason | None] = dict.fromkeys(members)
        left: dict[tuple[Selected, str, int], int] = {}
        waiting = list(gone)
        while waiting:
            for index, reason in self._along(waiting.pop(0), left):
                if index == NOBODY:
                    return None
                if index not in gone:
                    gone[index] = reason
                    waiting.append(index)
        return gone

    def _along(self, member: int, left: dict[tuple[Selected, str, int], int]) -> Iterator[tuple[int, Reason]]:
        """Who goes because a pod does, and why; ``left`` counts, by who wants them and where, pods that went before."""
        table = self._cluster.pods
        slot = int(self._take.slots[member])
        for mate in self._mates(slot):
            yield mate, Reason(member)
        for group in self._of_class.get(int(table.pod_class[slot]), ()):
            for key in group.keys:
                code = int(self._cluster.nodes.labels(key).codes[table.row[slot]])
                place = group.selected, key, code
                left[place] = left.get(place, 0) + 1
                if not code or self._cluster.domain_counts(group.selected, key)[code] != left[place]:
                    continue
                for dependent in self._around(group, key, code).tolist():
                    yield int(self._take.index_of[dependent]), Reason(member, (key,))

    def _mates(self, slot: int) -> list[int]:
        """The takeable pods of the group that the one in a slot goes with, `NOBODY` among them where not all may."""
        if self._wholes is None or not (key := self._wholes.key_of(self._cluster.pods.record(slot))):
            return []
        if not self._wholes.is_below(key, self._priority):
            return [NOBODY]
        mates: list[int] = np.sort(self._take.index_of[self._wholes.slots_of(key)]).tolist()
        return mates

    def _around(self, group: _Group, key: str, code: int) -> Int64s:
        """The slots of the group's pods in a domain whose affinity holds, but for those that terminate."""
        table, nodes = self._cluster.pods, self._cluster.nodes
        slots = self._slots.get(group.selected)
        if slots is None:
            slots = np.sort(table.slots_of(group.classes))
            rows = table.row[slots]
            holds = (rows != NOBODY) & ~table.terminating[slots]
            for each in group.keys:
                codes = nodes.labels(each).codes[rows]
                holds &= (codes != 0) & (self._cluster.domain_counts(group.selected, each)[codes] > 0)
            slots = self._slots[group.selected] = slots[holds]
        around: Int64s = slots[nodes.labels(key).codes[table.row[slots]] == code]
        return around


def have_dependents(cluster: Cluster) -> bool:
    """Whether any pod on a node may depend on another."""
    placed = cluster.pods.of_class
    return any(not placed.keys().isdisjoint(cluster.matcher(group.selected).classes) for group in _groups(cluster))


def _groups(cluster: Cluster) -> list[_Group]:
    terms = cluster.carried.all_affinity()
    if not terms:
        return []
    found: dict[Selected, list[int]] = {}
    for pod_class in cluster.classes.candidates([[(AFFINITY, term) for term in terms]]):
        selected = Selected(pod_class.required_affinity)
        if pod_class.id in cluster.pods.of_class and not selected.matches(pod_class, cluster.namespaces):
            found.setdefault(selected, []).append(pod_class.id)
    return [
        _Group(selected, tuple(dict.fromkeys(term.topology_key for term in selected.terms)), tuple(sorted(classes)))
        for selected, classes in found.items()
    ]
