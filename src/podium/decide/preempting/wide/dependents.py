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
        self._held: dict[Selected, tuple[Int64s, Int64s]] = {}
        # As they were before anybody went: a search may ask when some have.
        self._class_ids: Int64s = cluster.pods.pod_class[take.slots].astype(np.int64)
        self._counts: dict[tuple[Selected, str], Int64s] = {}
        self._mates: dict[str, list[int]] = {}

    def held(self) -> Dependents:
        """The same; it goes on to answer about the cluster as it is now, whoever comes and goes."""
        for group in dict.fromkeys(group for groups in self._of_class.values() for group in groups):
            self._holding(group)
            for key in group.keys:
                self._count(group, key)
        for key in self._wholes.keys if self._wholes is not None else ():
            self._mates_in(key)
        return self

    def __bool__(self) -> bool:
        """Whether any pod may go along with another."""
        return bool(self._of_class) or self._wholes is not None

    def are_of(self, members: Int64s) -> Bools:
        """``[members]``: with which of the takeable pods others may go along."""
        classes = self._class_ids[members]
        return np.isin(classes, [*self._of_class, *(self._wholes.classes if self._wholes is not None else ())])

    def by_affinity(self, members: Int64s) -> Bools:
        """``[members]``: on which of the takeable pods others may depend."""
        return np.isin(self._class_ids[members], list(self._of_class))

    def depend(self) -> frozenset[int]:
        """The takeable pods that depend on others by affinity."""
        groups = dict.fromkeys(group for groups in self._of_class.values() for group in groups)
        return frozenset(member for group in groups for member in self._holding(group)[0].tolist() if member != NOBODY)

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
        class_id, row = int(self._class_ids[member]), int(self._take.rows[member])
        key = "" if self._wholes is None else self._wholes.key_of_class(class_id)
        for mate in self._mates_in(key) if key else ():
            yield mate, Reason(member)
        for group in self._of_class.get(class_id, ()):
            for key in group.keys:
                code = int(self._cluster.nodes.labels(key).codes[row])
                place = group.selected, key, code
                left[place] = left.get(place, 0) + 1
                if not code or self._count(group, key)[code] != left[place]:
                    continue
                for dependent in self._around(group, key, code).tolist():
                    yield dependent, Reason(member, (key,))

    def _mates_in(self, key: str) -> list[int]:
        """The takeable pods of a group that goes as a whole, `NOBODY` among them where not all may go."""
        found = self._mates.get(key)
        if found is None and self._wholes is not None:
            is_below = self._wholes.is_below(key, self._priority)
            found = np.sort(self._take.index_of[self._wholes.slots_of(key)]).tolist() if is_below else [NOBODY]
            self._mates[key] = found
        return found or []

    def _count(self, group: _Group, key: str) -> Int64s:
        """``[codes]``: how many pods there are in each domain on whom the group's may depend."""
        found = self._counts.get((group.selected, key))
        if found is None:
            found = self._counts[group.selected, key] = self._cluster.domain_counts(group.selected, key).copy()
        return found

    def _around(self, group: _Group, key: str, code: int) -> Int64s:
        """The takeable pods of the group in a domain, `NOBODY` for each that may not be a victim."""
        members, rows = self._holding(group)
        around: Int64s = members[self._cluster.nodes.labels(key).codes[rows] == code]
        return around

    def _holding(self, group: _Group) -> tuple[Int64s, Int64s]:
        """The group's pods whose affinity holds, but for those that terminate, as takeable ones, and their rows."""
        found = self._held.get(group.selected)
        if found is None:
            table, nodes = self._cluster.pods, self._cluster.nodes
            slots = np.sort(table.slots_of(group.classes))
            rows = table.row[slots]
            holds = (rows != NOBODY) & ~table.terminating[slots]
            for key in group.keys:
                codes = nodes.labels(key).codes[rows]
                holds &= (codes != 0) & (self._count(group, key)[codes] > 0)
            found = self._held[group.selected] = self._take.index_of[slots[holds]], rows[holds].astype(np.int64)
        return found


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
