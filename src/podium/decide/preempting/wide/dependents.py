"""Pods that become victims with others: those whose required affinity only victims satisfy, and whole groups.

A pod depends on the pods that all of its required terms select. While one of these is in its domain of each term's
topology key it stays; when the last one leaves, it is a victim as well, and then the pods that depend on it. A pod that
its own terms select depends on no other: it may be the first of its group. Nor does a pod whose affinity did not hold
before. Pods of a group that is evicted as a whole (`WholeGroups`) become victims together.

Source: kube-scheduler-deep-dive.md ("if victim pod `server` has a required pod-affinity with a colocated victim pod
`database`, then default preemption should also remove `server` if it decides to remove `database`, but not vice
versa"); pkg/scheduler/framework/plugins/interpodaffinity/filtering.go (satisfyPodAffinity) for when affinity holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s, offsets
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import SelectedByTerms
from podium.cluster.selector_index import AFFINITY
from podium.decide.preempting.eligibility import NOT_IN_POOL, VictimPool, WholeGroups
from podium.decide.preempting.wide.victim_domains import MemberSets


@dataclass(frozen=True, slots=True, eq=False)
class _DependentClasses:
    """Classes of pods (ids) that require the same terms, over these topology keys."""

    selected: SelectedByTerms
    keys: tuple[str, ...]
    classes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DependenceReason:
    """Why a pod is a victim too: the pod that left, and the topology keys; none for a pod of its group."""

    of: int
    keys: tuple[str, ...] = ()


class Dependents:
    """The pods that become victims with others: by affinity, if that is wanted, and with whole groups."""

    def __init__(
        self,
        cluster: Cluster,
        pool: VictimPool,
        *,
        by_affinity: bool = True,
        wholes: WholeGroups | None = None,
        priority: int = 0,
    ) -> None:
        """``priority`` is the preemptor's: groups that state one as high stay."""
        self._cluster = cluster
        self._pool = pool
        self._wholes = wholes or None
        self._priority = priority
        # By the id of a class, the classes that depend on its pods.
        self._of_class: dict[int, list[_DependentClasses]] = {}
        for group in _dependent_classes(cluster) if by_affinity else ():
            for class_id in cluster.matcher(group.selected).classes:
                self._of_class.setdefault(class_id, []).append(group)
        self._held: dict[SelectedByTerms, tuple[Int64s, Int64s]] = {}
        # As of now: a search may ask after some pods have left.
        self._class_ids: Int64s = cluster.pods.pod_class[pool.slots].astype(np.int64)
        self._counts: dict[tuple[SelectedByTerms, str], Int64s] = {}
        self._mates: dict[str, list[int]] = {}

    def frozen(self) -> Dependents:
        """Return this object, which from now on answers about the present cluster even after pods come and go."""
        for group in self._groups():
            self._holding(group)
            for key in group.keys:
                self._count(group, key)
        for key in self._wholes.keys if self._wholes is not None else ():
            self.mates_in(key)
        return self

    def __bool__(self) -> bool:
        """Return whether any pod may become a victim with another."""
        return bool(self._of_class) or self._wholes is not None

    def are_of(self, members: Int64s, *, by_affinity: bool = False) -> Bools:
        """Return ``[members]``: the pods of the pool with which others may become victims; only those by affinity."""
        wholes = () if self._wholes is None or by_affinity else self._wholes.key_of_class
        return np.isin(self._class_ids[members], [*self._of_class, *wholes])

    def depend(self) -> frozenset[int]:
        """Return the pods of the pool that depend on others by affinity."""
        return frozenset(
            member for group in self._groups() for member in self._holding(group)[0].tolist() if member != NOT_IN_POOL
        )

    def closed(self, sets: MemberSets) -> MemberSets:
        """Return the sets with all pods that depend on them."""
        concerned = sets.allowed & (sets.sums(self.are_of(sets.entries)) > 0)
        if not concerned.any():
            return sets
        lists, allowed = np.split(sets.entries, sets.starts[1:-1]), sets.allowed.copy()
        for position in np.flatnonzero(concerned).tolist():
            found = self.of(lists[position].tolist())
            allowed[position] = found is not None
            if found is not None:
                lists[position] = np.array(sorted(found), dtype=np.int64)
        return MemberSets(offsets(list(map(len, lists))), np.concatenate(lists), allowed)

    def of(self, members: list[int]) -> dict[int, DependenceReason | None] | None:
        """Return pods of the pool with their dependents, and why; None if one of these may not be a victim."""
        gone: dict[int, DependenceReason | None] = dict.fromkeys(members)
        left: dict[tuple[SelectedByTerms, str, int], int] = {}
        waiting = list(gone)
        while waiting:
            for index, reason in self._dependents_of(waiting.pop(0), left):
                if index == NOT_IN_POOL:
                    return None
                if index not in gone:
                    gone[index] = reason
                    waiting.append(index)
        return gone

    def mates_in(self, key: str) -> list[int]:
        """Return the pods of a whole group, with `NOT_IN_POOL` among them if not all of them may be victims."""
        found = self._mates.get(key)
        if found is None and self._wholes is not None:
            is_below = self._wholes.is_below(key, self._priority)
            found = np.sort(self._pool.index_of[self._wholes.slots_of(key)]).tolist() if is_below else [NOT_IN_POOL]
            self._mates[key] = found
        return found or []

    def reason(self, member: int, members: Iterable[int]) -> DependenceReason | None:
        """Return why a pod of the pool goes if the others of some pods do; None if it need not."""
        others = sorted(other for other in members if other != member)
        closed = self.of(others) if others else None
        return None if closed is None else closed.get(member)

    def _dependents_of(
        self, member: int, left: dict[tuple[SelectedByTerms, str, int], int]
    ) -> Iterator[tuple[int, DependenceReason]]:
        """Yield the pods that leave with a pod, and why; ``left`` counts the pods that left before, by domain."""
        class_id, row = int(self._class_ids[member]), int(self._pool.rows[member])
        key = "" if self._wholes is None else self._wholes.key_of_class.get(class_id, "")
        for mate in self.mates_in(key) if key else ():
            yield mate, DependenceReason(member)
        for group in self._of_class.get(class_id, ()):
            for key in group.keys:
                code = int(self._cluster.nodes.labels(key).codes[row])
                place = group.selected, key, code
                left[place] = left.get(place, 0) + 1
                if not code or self._count(group, key)[code] != left[place]:
                    continue
                members, rows = self._holding(group)
                for dependent in members[self._cluster.nodes.labels(key).codes[rows] == code].tolist():
                    yield dependent, DependenceReason(member, (key,))

    def _groups(self) -> list[_DependentClasses]:
        return list(dict.fromkeys(group for groups in self._of_class.values() for group in groups))

    def _count(self, group: _DependentClasses, key: str) -> Int64s:
        """Return ``[codes]``: the number of pods in each domain on which the classes may depend."""
        found = self._counts.get((group.selected, key))
        if found is None:
            found = self._counts[group.selected, key] = self._cluster.domain_counts(group.selected, key).copy()
        return found

    def _holding(self, group: _DependentClasses) -> tuple[Int64s, Int64s]:
        """Return the running pods of the classes whose affinity holds (`NOT_IN_POOL` outside it), and their rows."""
        found = self._held.get(group.selected)
        if found is None:
            table, nodes = self._cluster.pods, self._cluster.nodes
            slots = np.sort(table.slots_of(group.classes))
            rows = table.row[slots]
            holds = (rows != NOT_IN_POOL) & ~table.terminating[slots]
            for key in group.keys:
                codes = nodes.labels(key).codes[rows]
                holds &= (codes != 0) & (self._count(group, key)[codes] > 0)
            found = self._held[group.selected] = self._pool.index_of[slots[holds]], rows[holds].astype(np.int64)
        return found


def have_dependents(cluster: Cluster) -> bool:
    """Return whether any pod on a node may depend on another."""
    placed = cluster.pods.of_class
    return any(
        not placed.keys().isdisjoint(cluster.matcher(group.selected).classes) for group in _dependent_classes(cluster)
    )


def _dependent_classes(cluster: Cluster) -> list[_DependentClasses]:
    terms = cluster.carried.affinity.all()
    if not terms:
        return []
    found: dict[SelectedByTerms, list[int]] = {}
    for pod_class in cluster.classes.candidates([[(AFFINITY, term) for term in terms]]):
        selected = SelectedByTerms(pod_class.required_affinity)
        if pod_class.id in cluster.pods.of_class and not selected.matches(pod_class, cluster.namespaces):
            found.setdefault(selected, []).append(pod_class.id)
    return [
        _DependentClasses(
            selected, tuple(dict.fromkeys(term.topology_key for term in selected.terms)), tuple(sorted(classes))
        )
        for selected, classes in found.items()
    ]
