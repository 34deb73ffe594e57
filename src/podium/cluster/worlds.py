"""Worlds: on each row, the cluster in which only that row's pods have changed.

World n is what the cluster would be if some pods left (or joined) node n and nothing else happened. Because a world
differs from the cluster on one row only, its sums are the cluster's plus a change a row, and all worlds are looked at
in one array operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import Predicate
from podium.cluster.node_view import NodeView, make_node_view
from podium.cluster.pods import PodRecord
from podium.cluster.view import View


@dataclass(frozen=True, slots=True)
class Change:
    """Pods that joined (sign 1) or left (sign -1) their worlds. All arrays and ``pods`` are ``[changes]``."""

    rows: Int64s
    pods: Sequence[PodRecord] | Int64s
    classes: Int32s
    sign: int


class Worlds(View):
    """One world a row. Positions index the worlds of this object, in the order of ``rows``, which ascend.

    A terminating pod that joins or leaves is counted also where the cluster leaves terminating pods out: kube-scheduler
    skips them when it counts the pods of topology spread constraints, and not when it is told that one was added or
    removed (podtopologyspread/filtering.go, calPreFilterState and updateWithPod). A count may fall below 0 by that.
    """

    def __init__(self, cluster: Cluster, rows: Int64s) -> None:
        super().__init__(cluster, rows)
        self._requested: Int64s = np.zeros((len(cluster.nodes.resources), len(rows)), dtype=np.int64)
        self._pod_count: Int64s = np.zeros(len(rows), dtype=np.int64)
        self._matching: dict[Predicate, Int64s] = {}
        self.changes: list[Change] = []

    def at(self, positions: Int64s) -> Worlds:
        """The worlds at some positions, to be changed on their own."""
        part = Worlds.__new__(Worlds)
        View.__init__(part, self.cluster, self.rows[positions])
        part._requested = self._requested[:, positions]
        part._pod_count = self._pod_count[positions]
        part._matching = {predicate: change[positions] for predicate, change in self._matching.items()}
        part.changes = list(self.changes)
        return part

    def remove(self, positions: Int64s, slots: Int64s) -> None:
        """Take the pods in ``slots`` out of the worlds at ``positions`` (ascending, one entry a pod)."""
        self._apply_slots(positions, slots, -1)

    def add(self, positions: Int64s, slots: Int64s) -> None:
        """Give the pods in ``slots`` back to the worlds at ``positions`` (ascending, one entry a pod)."""
        self._apply_slots(positions, slots, 1)

    def join(self, positions: Int64s, pods: Sequence[PodRecord]) -> None:
        """Let pods that are on no node yet join the worlds at ``positions`` (ascending, one entry a pod)."""
        classes = np.array([pod.pod_class.id for pod in pods], dtype=np.int32)
        self._apply(positions, Change(self.rows[positions], pods, classes, 1))

    def requested(self, resource: int | Int64s) -> Int64s:
        amounts: Int64s = super().requested(resource) + self._requested[resource]
        return amounts

    def pod_count(self) -> Int64s:
        return super().pod_count() + self._pod_count

    def count(self, predicate: Predicate) -> Int64s:
        return super().count(predicate) + self.change(predicate)

    def domain_count(self, predicate: Predicate, key: str) -> Int64s:
        labelled = self.codes(key) != 0
        return super().domain_count(predicate, key) + np.where(labelled, self.change(predicate), 0)

    def labelled_count(self, predicate: Predicate, key: str) -> Int64s:
        labelled = self.codes(key) != 0
        return super().labelled_count(predicate, key) + np.where(labelled, self.change(predicate), 0)

    def change(self, predicate: Predicate) -> Int64s:
        known = self._matching.get(predicate)
        if known is None:
            known = self._matching[predicate] = np.zeros(len(self), dtype=np.int64)
            for change in self.changes:
                self._count(predicate, known, self._positions(change), change)
        return known

    def is_held(self, predicate: Predicate) -> Bools:
        held = View.count(self, predicate) > 0
        matcher = self.cluster.matcher(predicate)
        for change in self.changes:
            positions = self._positions(change)
            held[positions[matcher.matching(change.classes) & (positions >= 0)]] = change.sign > 0
        return held

    def pods(self, position: int) -> list[PodRecord]:
        row = int(self.rows[position])
        pods = {pod.uid: pod for pod in self.cluster.pods_on(row)}
        for change in self.changes:
            for index in np.flatnonzero(change.rows == row):
                pod = self._pod(change, int(index))
                if change.sign > 0:
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
        """The pods that left (-1) and joined (1) the world at a position, in order."""
        row = int(self.rows[position])
        return [
            (change.sign, self._pod(change, int(index)))
            for change in self.changes
            for index in np.flatnonzero(change.rows == row)
        ]

    def _positions(self, change: Change) -> Int64s:
        """Where a change's rows are among these worlds; -1 for rows that are not."""
        at = np.minimum(np.searchsorted(self.rows, change.rows), len(self) - 1)
        return np.where(self.rows[at] == change.rows, at, -1)

    def _pod(self, change: Change, index: int) -> PodRecord:
        pod = change.pods[index]
        return pod if isinstance(pod, PodRecord) else self.cluster.pods.record(int(pod))

    def _apply_slots(self, positions: Int64s, slots: Int64s, sign: int) -> None:
        classes = self.cluster.pods.pod_class[slots]
        self._apply(positions, Change(self.rows[positions], slots, classes, sign))

    def _apply(self, positions: Int64s, change: Change) -> None:
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
        self.changes.append(change)

    def _count(self, predicate: Predicate, known: Int64s, positions: Int64s, change: Change) -> None:
        matching = self.cluster.matcher(predicate).matching(change.classes)
        here = positions >= 0
        np.add.at(known, positions[here], change.sign * matching[here].astype(np.int64))
