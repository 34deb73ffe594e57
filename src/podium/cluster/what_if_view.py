"""What-if views: the cluster with some pods added or removed, differently for each row.

Entry n shows the cluster as if some pods left or joined node n. It differs from the cluster on one row only, so that
its sums are the cluster's plus a change for each row, and all entries are computed in one array operation. Pods may
also leave and join elsewhere: that changes the sums over domains (`View.elsewhere`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import Predicate
from podium.cluster.pods import PodRecord
from podium.cluster.view import Elsewhere, NodeView, View, make_node_view


class WhatIfView(View):
    """One hypothetical cluster for each position, in the order of ``rows``, which ascend.

    With ``many``, a row may have several positions, in any order.

    A terminating pod that joins or leaves counts even for predicates that exclude such pods: kube-scheduler skips them
    when it counts the pods of topology spread constraints, but not when a pod is added or removed
    (podtopologyspread/filtering.go, calPreFilterState and updateWithPod). So counts may fall below 0.
    """

    def __init__(self, cluster: Cluster, rows: Int64s, *, many: bool = False) -> None:
        super().__init__(cluster, rows)
        self.are_many = many
        # The identity of each position, ascending.
        self._ids: Int64s = np.arange(len(rows)) if many else rows
        self._ids_end = len(rows)
        # With ``many``, the position of each id.
        self._at: Int64s | None = None
        self._requested: Int64s = np.zeros((len(cluster.nodes.resources), len(rows)), dtype=np.int64)
        self._pod_count: Int64s = np.zeros(len(rows), dtype=np.int64)
        self._matching: dict[Predicate, Int64s] = {}
        # By how much the counts of domains differ, without pods that joined everywhere.
        self._around: dict[tuple[Predicate, str], Int64s] = {}
        self.changes: list[PodMoves] = []
        self._elsewhere: list[PodMoves] = []
        # The same for all positions; pods on a position's own row are among ``changes``.
        self._everywhere: list[PodMoves] = []

    def at(self, positions: Int64s) -> WhatIfView:
        """Return the view of some positions, to be changed separately."""
        part = WhatIfView.__new__(WhatIfView)
        View.__init__(part, self.cluster, self.rows[positions])
        part.are_many, part._ids = self.are_many, self._ids[positions]
        part._ids_end, part._at = self._ids_end, None
        part._requested = self._requested[:, positions]
        part._pod_count = self._pod_count[positions]
        part._matching = {predicate: change[positions] for predicate, change in self._matching.items()}
        part._around = {place: change[positions] for place, change in self._around.items()}
        part.changes = list(self.changes)
        part._elsewhere = list(self._elsewhere)
        part._everywhere = list(self._everywhere)
        return part

    def remove(self, positions: Int64s, slots: Int64s) -> None:
        """Remove the pods in ``slots`` at ``positions`` (ascending, one entry for each pod)."""
        self._apply_slots(positions, slots, -1)

    def add(self, positions: Int64s, slots: Int64s) -> None:
        """Return the pods in ``slots`` to ``positions`` (ascending, one entry for each pod)."""
        self._apply_slots(positions, slots, 1)

    def join(self, positions: Int64s, pods: Sequence[PodRecord]) -> None:
        """Add pods without a node at ``positions`` (ascending, one entry for each pod)."""
        classes = np.array([pod.pod_class.id for pod in pods], dtype=np.int32)
        self._apply(positions, PodMoves(self._ids[positions], pods, classes, 1))

    def remove_anywhere(self, positions: Int64s, slots: Int64s) -> None:
        """Remove the pods in ``slots``, on any row, for ``positions`` (ascending, one entry for each pod)."""
        self._apply_anywhere(positions, slots, -1)

    def add_anywhere(self, positions: Int64s, slots: Int64s) -> None:
        """Return the pods in ``slots``, on any row, for ``positions`` (ascending, one entry for each pod)."""
        self._apply_anywhere(positions, slots, 1)

    def join_everywhere(self, pods: Sequence[PodRecord], rows: Int64s) -> None:
        """Add pods without a node on ``rows`` for all positions."""
        positions, own = np.nonzero(self.rows[:, None] == rows[None, :])
        if len(own):
            self.join(positions, [pods[index] for index in own.tolist()])
        classes = np.array([pod.pod_class.id for pod in pods], dtype=np.int32)
        self._everywhere.append(PodMoves(np.empty(0, dtype=np.int64), pods, classes, 1, rows))

    def requested(self, resource: int | Int64s) -> Int64s:
        amounts: Int64s = super().requested(resource) + self._requested[resource]
        return amounts

    def pod_count(self) -> Int64s:
        return super().pod_count() + self._pod_count

    def count(self, predicate: Predicate) -> Int64s:
        return super().count(predicate) + self.change(predicate)

    def domain_count(self, predicate: Predicate, key: str) -> Int64s:
        # By how much the matching pods in each row's domain differ from the cluster's; 0 without the label.
        around = self._around.get((predicate, key))
        if around is None:
            around = np.where(self.codes(key) != 0, self.change(predicate), 0)
            for positions, rows, sign in self.elsewhere(predicate):
                around += sign * np.bincount(self._near(key, positions, rows), minlength=len(self))
            self._around[predicate, key] = around
        counts: Int64s = super().domain_count(predicate, key) + around
        own, codes = self.codes(key), self.cluster.nodes.labels(key).codes
        for rows in self.everywhere(predicate):
            domains, on_rows = np.bincount(codes[rows]), np.bincount(rows)
            joined = _entries(domains, own) - _entries(on_rows, self.rows)
            counts += np.where(own != 0, joined, 0)
        return counts

    def labelled_count(self, predicate: Predicate, key: str) -> Int64s:
        labelled = self.codes(key) != 0
        counts: Int64s = super().labelled_count(predicate, key) + np.where(labelled, self.change(predicate), 0)
        for positions, rows, sign in self.elsewhere(predicate):
            labelled = self.cluster.nodes.labels(key).codes[rows] != 0
            counts += sign * np.bincount(positions[labelled], minlength=len(self))
        for rows in self.everywhere(predicate):
            joined = rows[self.cluster.nodes.labels(key).codes[rows] != 0]
            counts += len(joined) - _entries(np.bincount(joined), self.rows)
        return counts

    def everywhere(self, predicate: Predicate) -> Iterator[Int64s]:
        matcher = self.cluster.matcher(predicate)
        for change in self._everywhere:
            matching = matcher.matching(change.classes)
            if predicate.live_only:
                matching &= ~change.terminating(self.cluster)
            if change.rows is not None and matching.any():
                yield change.rows[matching]

    def elsewhere(self, predicate: Predicate) -> Iterator[Elsewhere]:
        for change in self._elsewhere:
            indices = change.matching(self.cluster, predicate)
            if not len(indices) or change.rows is None:
                continue
            positions = self._positions(change.ids[indices])
            here = positions >= 0
            if not here.all():
                positions, indices = positions[here], indices[here]
            if len(indices):
                yield positions, change.rows[indices], change.sign

    def change(self, predicate: Predicate) -> Int64s:
        known = self._matching.get(predicate)
        if known is None:
            known = self._matching[predicate] = np.zeros(len(self), dtype=np.int64)
            for change in self.changes:
                self._count(predicate, known, self._positions(change.ids), change)
        return known

    def is_held(self, predicate: Predicate) -> Bools:
        held = View.count(self, predicate) > 0
        matcher = self.cluster.matcher(predicate)
        for change in self.changes:
            positions = self._positions(change.ids)
            held[positions[matcher.matching(change.classes) & (positions >= 0)]] = change.sign > 0
        return held

    def pods(self, position: int) -> list[PodRecord]:
        pods = {pod.uid: pod for pod in self.cluster.pods_on(int(self.rows[position]))}
        for sign, pod in self.history(position):
            if sign > 0:
                pods[pod.uid] = pod
            else:
                pods.pop(pod.uid, None)
        return list(pods.values())

    def node(self, position: int) -> NodeView:
        row, requested = int(self.rows[position]), self._requested[:, position]
        amounts = self.cluster.nodes.requested[: len(requested), row] + requested
        return make_node_view(self.cluster.nodes, row, self.pods(position), amounts.tolist())

    def nodes(self, positions: Int64s | None = None) -> list[NodeView]:
        return [self.node(position) for position in (range(len(self)) if positions is None else positions.tolist())]

    def history(self, position: int) -> list[tuple[int, PodRecord]]:
        """Return the pods that left (-1) and joined (1) the own row of a position, in order."""
        return [
            (change.sign, change.pod(self.cluster, int(index)))
            for change in self.changes
            for index in np.flatnonzero(change.ids == self._ids[position])
        ]

    def history_elsewhere(self, position: int) -> list[tuple[int, PodRecord, NodeView]]:
        """Return the same for all other rows, each pod with its node after the change."""
        on_row: dict[int, dict[str, PodRecord]] = {}
        found = []
        for change in (*self._elsewhere, *self._everywhere):
            rows = np.empty(0, dtype=np.int64) if change.rows is None else change.rows
            is_everywhere = not len(change.ids)
            concerned = rows != self.rows[position] if is_everywhere else change.ids == self._ids[position]
            for index in np.flatnonzero(concerned).tolist():
                pod, row = change.pod(self.cluster, index), int(rows[index])
                pods = on_row.setdefault(row, {pod.uid: pod for pod in self.cluster.pods_on(row)})
                if change.sign > 0:
                    pods[pod.uid] = pod
                else:
                    pods.pop(pod.uid, None)
                amounts = np.zeros(len(self.cluster.nodes.resources), dtype=np.int64)
                for other in pods.values():
                    for resource, amount in other.pod_class.requests.items():
                        amounts[resource] += amount
                node = make_node_view(self.cluster.nodes, row, pods.values(), amounts.tolist())
                found.append((change.sign, pod, node))
        return found

    def _positions(self, ids: Int64s) -> Int64s:
        """Return the positions of some ids; -1 for ids that are not in this view."""
        if self.are_many:
            if self._at is None:
                self._at = np.full(self._ids_end, -1, dtype=np.int64)
                self._at[self._ids] = np.arange(len(self))
            positions: Int64s = self._at[ids]
            return positions
        at = np.minimum(np.searchsorted(self._ids, ids), len(self) - 1)
        return np.where(self._ids[at] == ids, at, -1)

    def _apply_slots(self, positions: Int64s, slots: Int64s, sign: int) -> None:
        classes = self.cluster.pods.pod_class[slots]
        self._apply(positions, PodMoves(self._ids[positions], slots, classes, sign))

    def _apply_anywhere(self, positions: Int64s, slots: Int64s, sign: int) -> None:
        rows = self.cluster.pods.row[slots].astype(np.int64)
        own = rows == self.rows[positions]
        if not own.all():
            other = ~own
            classes = self.cluster.pods.pod_class[slots[other]]
            change = PodMoves(self._ids[positions[other]], slots[other], classes, sign, rows[other])
            self._elsewhere.append(change)
            # In the domains of the own rows.
            for (predicate, key), known in self._around.items():
                indices = change.matching(self.cluster, predicate)
                if len(indices):
                    near = self._near(key, positions[other][indices], rows[other][indices])
                    np.add(known, sign * np.bincount(near, minlength=len(known)), out=known)
            positions, slots = positions[own], slots[own]
        self._apply_slots(positions, slots, sign)

    def _apply(self, positions: Int64s, change: PodMoves) -> None:
        if not len(positions):
            return
        amounts = change.sign * self.cluster.classes.requests[:, change.classes]
        numbers = np.full(len(positions), change.sign, dtype=np.int64)
        first = np.ones(len(positions), dtype=np.bool_)
        np.not_equal(positions[1:], positions[:-1], out=first[1:])
        touched = positions
        if not first.all():
            starts = np.flatnonzero(first)
            amounts, numbers = np.add.reduceat(amounts, starts, axis=1), np.add.reduceat(numbers, starts)
            touched = positions[starts]
        self._requested[: len(amounts), touched] += amounts
        self._pod_count[touched] += numbers
        for predicate, known in self._matching.items():
            self._count(predicate, known, positions, change)
        for (predicate, key), known in self._around.items():
            self._count(predicate, known, np.where(self.codes(key)[positions] != 0, positions, -1), change)
        self.changes.append(change)

    def _count(self, predicate: Predicate, known: Int64s, positions: Int64s, change: PodMoves) -> None:
        """Count the matching pods of a change of own rows; a position of -1 is ignored."""
        matching = self.cluster.matcher(predicate).matching(change.classes)
        if matching.any():
            known += change.sign * np.bincount(positions[matching & (positions >= 0)], minlength=len(known))

    def _near(self, key: str, positions: Int64s, rows: Int64s) -> Int64s:
        """Return the positions whose domain includes the row of the pod beside each."""
        own, theirs = self.codes(key)[positions], self.cluster.nodes.labels(key).codes[rows]
        near: Int64s = positions[(own != 0) & (own == theirs)]
        return near


def _entries(numbers: Int64s, places: Int64s | Int32s) -> Int64s:
    """Return the numbers at some indices; 0 beyond the last."""
    if not len(numbers):
        return np.zeros(len(places), dtype=np.int64)
    return np.where(places < len(numbers), numbers[np.minimum(places, len(numbers) - 1)], 0)


class PodMoves(Struct, frozen=True):
    """Pods that joined (sign 1) or left (sign -1) at the positions with these ``ids``. Arrays are ``[changes]``.

    ``rows`` are the pods' rows, None for the positions' own. Matches are cached and shared by all parts of a view.
    """

    ids: Int64s
    pods: Sequence[PodRecord] | Int64s
    classes: Int32s
    sign: int
    rows: Int64s | None = None
    _matching: dict[Predicate, Int64s] = {}

    def pod(self, cluster: Cluster, index: int) -> PodRecord:
        pod = self.pods[index]
        return pod if isinstance(pod, PodRecord) else cluster.pods.record(int(pod))

    def terminating(self, cluster: Cluster) -> Bools:
        """Return ``[changes]`` which of the pods terminate."""
        if isinstance(self.pods, np.ndarray):
            terminating: Bools = cluster.pods.terminating[self.pods]
            return terminating
        return np.array([pod.terminating for pod in self.pods], dtype=np.bool_)

    def matching(self, cluster: Cluster, predicate: Predicate) -> Int64s:
        """Return the indices of the matching pods, as the cluster counts them."""
        known = self._matching.get(predicate)
        if known is None:
            matching = cluster.matcher(predicate).matching(self.classes)
            if predicate.live_only and matching.any():
                matching = matching & ~self.terminating(cluster)
            known = self._matching[predicate] = np.flatnonzero(matching)
        return known
