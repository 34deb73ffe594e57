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

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import numpy as np
from msgspec import Struct

from podium.cluster import matchers, pods, selector_index
from podium.cluster.arrays import Bools, Int64s, offsets
from podium.cluster.cluster import Cluster
from podium.decide.preempting.eligibility import NOT_IN_POOL, VictimPool, WholeGroups
from podium.decide.preempting.wide.victim_domains import MemberSets


class _DependentPods(Struct, frozen=True, eq=False):
    """Running pods whose affinity holds by the same terms: members of the pool, or `NOT_IN_POOL`, and their rows.

    ``counts`` has, by the terms' topology keys, ``[codes]``: the number of pods in each domain that all terms select.
    """

    counts: Mapping[str, Int64s]
    members: Int64s
    rows: Int64s


class DependenceReason(Struct, frozen=True):
    """Why a pod is a victim too: the pod that left, and the topology keys; none for a pod of its group."""

    of: int
    keys: tuple[str, ...] = ()


class Dependents:
    """The pods that become victims with others: by affinity, if that is wanted, and with whole groups.

    It answers about the cluster as of creation, even after pods come and go, but for `mates` not asked for before.
    """

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
        self._nodes = cluster.nodes
        self._pool = pool
        self._key_of_whole = {} if wholes is None else wholes.key_of_class
        self._class_ids: Int64s = cluster.pods.pod_class[pool.slots].astype(np.int64)
        # By the id of a class, the pods that depend on its pods.
        self._of_class: dict[int, list[_DependentPods]] = {}
        self._groups: list[_DependentPods] = []
        for selected, classes in _dependent_classes(cluster).items() if by_affinity else ():
            counts = {
                term.topology_key: cluster.domain_counts(selected, term.topology_key).copy() for term in selected.terms
            }
            slots = np.sort(cluster.pods.slots_of(classes))
            rows = cluster.pods.row[slots].astype(np.int64)
            holds = (rows != pods.NO_ROW) & ~cluster.pods.terminating[slots]
            for key, count in counts.items():
                codes = cluster.nodes.labels(key).codes[rows]
                holds &= (codes != 0) & (count[codes] > 0)
            self._groups.append(_DependentPods(counts, pool.index_of[slots[holds]], rows[holds]))
            for class_id in cluster.matcher(selected).classes:
                self._of_class.setdefault(class_id, []).append(self._groups[-1])
        self.mates = cache(lambda key: [] if wholes is None else wholes.mates(key, priority, pool))
        """Returns the pods of a whole group (its key), as of the first call: see `WholeGroups.mates`."""

    def __bool__(self) -> bool:
        """Return whether any pod may become a victim with another."""
        return bool(self._of_class or self._key_of_whole)

    def are_of(self, members: Int64s, *, by_affinity: bool = False) -> Bools:
        """Return ``[members]``: the pods of the pool with which others may become victims; only those by affinity."""
        return np.isin(self._class_ids[members], [*self._of_class, *(() if by_affinity else self._key_of_whole)])

    def depend(self) -> frozenset[int]:
        """Return the pods of the pool that depend on others by affinity."""
        return frozenset(member for group in self._groups for member in group.members.tolist()) - {NOT_IN_POOL}

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
        left: Counter[tuple[_DependentPods, str, int]] = Counter()
        waiting = list(gone)
        while waiting:
            for index, reason in self._dependents_of(waiting.pop(0), left):
                if index == NOT_IN_POOL:
                    return None
                if index not in gone:
                    gone[index] = reason
                    waiting.append(index)
        return gone

    def reason(self, member: int, members: Iterable[int]) -> DependenceReason | None:
        """Return why a pod of the pool goes if the others of some pods do; None if it need not."""
        others = sorted(other for other in members if other != member)
        closed = self.of(others) if others else None
        return None if closed is None else closed.get(member)

    def _dependents_of(
        self, member: int, left: Counter[tuple[_DependentPods, str, int]]
    ) -> Iterator[tuple[int, DependenceReason]]:
        """Yield the pods that leave with a pod, and why; ``left`` counts the pods that left before, by domain."""
        class_id, row = int(self._class_ids[member]), int(self._pool.rows[member])
        for mate in self.mates(self._key_of_whole[class_id]) if class_id in self._key_of_whole else ():
            yield mate, DependenceReason(member)
        for group in self._of_class.get(class_id, ()):
            for key, count in group.counts.items():
                codes = self._nodes.labels(key).codes
                code = int(codes[row])
                left[group, key, code] += 1
                if code and count[code] == left[group, key, code]:
                    for dependent in group.members[codes[group.rows] == code].tolist():
                        yield dependent, DependenceReason(member, (key,))


def have_dependents(cluster: Cluster) -> bool:
    """Return whether any pod on a node may depend on another."""
    placed = cluster.pods.of_class
    return any(not placed.keys().isdisjoint(cluster.matcher(each).classes) for each in _dependent_classes(cluster))


def _dependent_classes(cluster: Cluster) -> dict[matchers.SelectedByTerms, list[int]]:
    """Return the classes (ids) of placed pods that depend on others, by all of their required terms."""
    found: dict[matchers.SelectedByTerms, list[int]] = {}
    terms = cluster.carried.affinity.all()
    for pod_class in cluster.classes.candidates([[(selector_index.AFFINITY, term) for term in terms]]) if terms else ():
        selected = matchers.SelectedByTerms(pod_class.required_affinity)
        if pod_class.id in cluster.pods.of_class and not selected.matches(pod_class, cluster.namespaces):
            found.setdefault(selected, []).append(pod_class.id)
    return found
