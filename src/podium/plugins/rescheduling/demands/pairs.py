"""Two pods that go together: one to where less is missed, and one that makes room for it there.

Source: controlled-rescheduling.md, /evict subresource and PreferAvoidPods ("evict two pods at the same time with the
intent of moving one into the space vacated by the other").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Relocation
from podium.plugins.rescheduling.demands.demands import Demands
from podium.plugins.rescheduling.parts.rough_fit import has_room, rough_choice, rough_fit

# For one pod so many nodes are looked into, so many pods on them asked where they could go, and so many proposed.
_MOST_NODES = 16
_MOST_ASKED = 12
_MOST_PAIRS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A pod that would gain in the room of another, and that other, each with where it may go."""

    taking: Relocation
    giving: PodRecord
    refuge: Bools

    @property
    def relocations(self) -> tuple[Relocation, Relocation]:
        """Both, in the order in which they find their places."""
        return self.taking, Relocation(self.giving, self.refuge)


class Pairs:
    """Finds for a pod those whose room it should have, as things are in a picture."""

    def __init__(self, demands: Demands, picture: Picture) -> None:
        self._demands = demands
        self._picture = picture

    def may_move(self, pod: PodRecord) -> bool:
        """Whether a pod is where it was when it was found, and may be touched."""
        return self._picture.cluster.placed.get(pod.uid) is pod and self._picture.is_movable(pod)

    def of(self, pod: PodRecord) -> list[Pair]:
        """The best pairs: those whose other pod is the least important and loses the least, then by its key.

        Only full nodes count that are better than any with room. No more important pod makes room, and none that
        would lose as much as is gained.
        """
        self._demands.follow(self._picture)
        found: list[tuple[int, int, str, str, Pair]] = []
        for other, gain in islice(self._others(pod), _MOST_ASKED):
            refuge = self._refuge(other, pod)
            loss = self._loss(other, refuge)
            if loss is not None and loss < gain:
                targets = np.zeros(len(refuge), dtype=np.bool_)
                targets[other.row] = True
                pair = Pair(Relocation(pod, targets), other, refuge)
                found.append((other.priority, loss - gain, other.key, other.uid, pair))
        return [entry[-1] for entry in sorted(found, key=lambda entry: entry[:-1])[:_MOST_PAIRS]]

    def _others(self, pod: PodRecord) -> Iterator[tuple[PodRecord, int]]:
        """The pods that leave enough room on better nodes, by importance, then key; with what is gained there."""
        cluster, found = self._picture.cluster, list[tuple[PodRecord, int]]()
        for row, gain in self._full_nodes(pod):
            at = np.array([row], dtype=np.int64)
            found += [
                (other, gain)
                for other in cluster.pods_on(row)
                if other.priority <= pod.priority and not other.terminating and has_room(self._picture, pod, at, other)
            ]
        found.sort(key=lambda entry: (entry[0].priority, -entry[1], entry[0].key, entry[0].uid))
        return ((other, gain) for other, gain in found if self._picture.is_movable(other))

    def _full_nodes(self, pod: PodRecord) -> list[tuple[int, int]]:
        """The rows without room that are better than any with room, and than where it is; and how much better.

        The best first, of equals the first by name.
        """
        choice = rough_choice(self._picture, pod)
        rows = np.flatnonzero(choice).astype(np.int64)
        if not len(rows):
            return []
        class_id = pod.pod_class.id
        leaving = int(self._demands.leaving(class_id)[pod.row])
        arriving = self._arriving(pod)[rows]
        fitting = has_room(self._picture, pod, rows)
        at_most = min(leaving, int(np.min(arriving[fitting], initial=leaving)))
        better = [
            (int(row), leaving - int(missed))
            for row, missed in zip(rows[~fitting], arriving[~fitting], strict=True)
            if missed < at_most
        ]
        better.sort(key=lambda entry: (-entry[1], self._picture.node_name(entry[0])))
        return better[:_MOST_NODES]

    def _refuge(self, other: PodRecord, pod: PodRecord) -> Bools:
        """`[rows]`: where the other pod may go, which includes the room that the first one leaves."""
        fits = rough_fit(self._picture, other)
        left = np.zeros(len(fits), dtype=np.bool_)
        left[pod.row] = True
        if rough_choice(self._picture, other, left)[pod.row]:
            at = np.array([pod.row], dtype=np.int64)
            fits[pod.row] = bool(has_room(self._picture, other, at, pod)[0])
        return fits

    def _loss(self, other: PodRecord, refuge: Bools) -> int | None:
        """By how much more is missed once the other pod is in its best refuge; None where it has none."""
        if not refuge.any():
            return None
        class_id = other.pod_class.id
        if class_id not in self._demands.concerned():
            return 0
        leaving = int(self._demands.leaving(class_id)[other.row])
        return int(self._arriving(other)[refuge].min()) - leaving

    def _arriving(self, pod: PodRecord) -> Int64s:
        """`[rows]`: by how much more is missed with the pod there, once it has left where it is."""
        class_id, row = pod.pod_class.id, pod.row
        self._demands.count(class_id, row, -1)
        arriving = self._demands.arriving(class_id)
        self._demands.count(class_id, row, 1)
        return arriving
