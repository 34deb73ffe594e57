"""For how much of the wanted room there is none, and which pods are in the way.

Source: controlled-rescheduling.md, Example use cases ("make room for large and/or exclusive pods", "preempting a
running pod to make room for a pending pod").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from podium.api.quantity import format_quantity
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Float64s, Proposal, Relocation
from podium.plugins.rescheduling.consolidation.freed_nodes import by_size
from podium.plugins.rescheduling.consolidation.wanted_room import Need, WantedRoom
from podium.plugins.rescheduling.parts.row_changes import RowChanges


@dataclass(frozen=True, slots=True)
class _WayOut:
    """Pods whose leaving makes room on a node; ``lacking`` says in words what they hold."""

    row: int
    leaving: tuple[PodRecord, ...]
    lacking: str


class MissingRoom:
    """The rooms that are wanted, and the places for each by row, brought up to date for the rows that changed."""

    def __init__(self, wanted: Sequence[WantedRoom], max_nodes: int) -> None:
        self._wanted = tuple(wanted)
        self._max_nodes = max_nodes
        self._changes = RowChanges()
        self._places: list[Int64s] = []

    def missing(self, picture: Picture) -> int:
        """For how many pods there is no room. What one room takes of a node, the next one does not find there."""
        self._look(picture.cluster)
        taken: dict[int, list[tuple[WantedRoom, int]]] = {}
        return sum(self._missing_of(index, picture, taken) for index in range(len(self._wanted)))

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """What makes room, the most important first; for each the fewest and least important pods, then by node."""
        for index, room in enumerate(self._wanted):
            for row in self._nearest(index, room, picture):
                self._look(picture.cluster)
                if not self._missing_upto(index, picture):
                    break
                way_out = self._way_out(room, picture, row)
                if way_out is not None:
                    yield self._proposal(index, room, picture, way_out)

    def _look(self, cluster: Cluster) -> None:
        rows = self._changes.since_last(cluster)
        if rows is None:
            rows = cluster.nodes.all_rows()
            self._places = [np.zeros(len(rows), dtype=np.int64) for _ in self._wanted]
        if len(rows):
            for room, places in zip(self._wanted, self._places, strict=True):
                places[rows] = room.places(cluster, rows)

    def _open(self, index: int, picture: Picture) -> Int64s:
        """``[rows]``: the places for a room on nodes that take pods."""
        places, room = self._places[index], self._wanted[index]
        found: Int64s = np.where(picture.targets[: len(places)], places, 0)
        held_off = room.held_off(picture.cluster)
        if held_off is not None:
            found[held_off] = 0
        return found

    def _missing_upto(self, index: int, picture: Picture) -> int:
        """How many places a room lacks beside those before it."""
        taken: dict[int, list[tuple[WantedRoom, int]]] = {}
        missing = 0
        for each in range(index + 1):
            missing = self._missing_of(each, picture, taken)
        return missing

    def _missing_of(self, index: int, picture: Picture, taken: dict[int, list[tuple[WantedRoom, int]]]) -> int:
        """How many places a room lacks, beside what others have ``taken``; what it takes itself is noted there.

        It takes the narrowest rows first, and of these the first.
        """
        room, places = self._wanted[index], self._open(index, picture)
        for row, others in taken.items():
            places[row] = min(int(places[row]), self._left(room, picture.cluster, row, others))
        missing = room.wanted
        is_last = index == len(self._wanted) - 1
        if is_last or not places.any():
            return max(missing - int(places.sum()), 0)
        for row in _narrowest_first(places, missing):
            if not missing:
                break
            number = min(missing, int(places[row]))
            taken.setdefault(row, []).append((room, number))
            missing -= number
        return missing

    def _left(self, room: WantedRoom, cluster: Cluster, row: int, others: Sequence[tuple[WantedRoom, int]]) -> int:
        """For how many pods there is room on a row beside those of others."""
        entries = cluster.nodes.entries
        pods = int(entries.allowed_pods[row] - entries.pod_count[row]) - sum(number for _, number in others)
        for need in room.needs:
            free = need.free_on(cluster, row)
            for other, number in others:
                free -= number * sum(each.amount for each in other.needs if each.name == need.name)
            pods = min(pods, free // need.amount)
        return max(pods, 0)

    # What is in the way

    def _nearest(self, index: int, room: WantedRoom, picture: Picture) -> list[int]:
        """The rows to look into that could take a pod if others left: those that lack least; of equals, by name."""
        cluster = picture.cluster
        self._look(cluster)
        if not self._missing_upto(index, picture):
            return []
        count = cluster.nodes.count
        could: Bools = room.eligible & picture.targets[:count] & (self._open(index, picture) == 0)
        for need in room.needs:
            could &= need.offered(cluster, cluster.nodes.all_rows()) >= need.amount
        rows = np.flatnonzero(could).astype(np.int64)
        lacking: Float64s = np.zeros(len(rows))
        for need in room.needs:
            lacking = np.maximum(lacking, 1 - need.free(cluster, rows) / need.amount)
        ranked = sorted(zip(lacking.tolist(), rows.tolist(), strict=True), key=lambda pair: pair[0])
        # As many more as lack as little as the last one, so that the names decide between them.
        if len(ranked) > self._max_nodes:
            ranked = [pair for pair in ranked if pair[0] <= ranked[self._max_nodes - 1][0]]
        ranked.sort(key=lambda pair: (pair[0], cluster.nodes.name(pair[1])))
        found = [self._way_out(room, picture, row) for _, row in ranked[: self._max_nodes]]
        ways = [way for way in found if way is not None]
        ways.sort(key=lambda way: (_cost(way), cluster.nodes.name(way.row)))
        return [way.row for way in ways]

    def _way_out(self, room: WantedRoom, picture: Picture, row: int) -> _WayOut | None:
        """The fewest pods of a node, and of these the least important, without whom one more pod has room there."""
        cluster = picture.cluster
        here = cluster.pods_on(row)
        must = [pod for pod in here if room.conflicting(cluster, pod)]
        if must and not room.is_of_row_alone(cluster, row):
            return None
        if not all(map(picture.is_movable, must)):
            return None
        lacking = {need: need.amount - need.free_on(cluster, row) for need in room.needs}
        slots = 1 - int(cluster.nodes.allowed_pods[row] - cluster.nodes.pod_count[row])
        in_words = ", ".join(
            f"{format_quantity(lack, need.name)} {need.name}" for need, lack in lacking.items() if lack > 0
        )
        leaving = list(must)
        for need in lacking:
            lacking[need] -= sum(need.held_by(pod) for pod in must)
        others = [pod for pod in here if pod not in must and picture.is_movable(pod)]
        while any(lack > 0 for lack in lacking.values()) or slots > len(leaving):
            best = min(others, key=lambda pod: (-_help(pod, lacking), pod.priority, pod.key, pod.uid), default=None)
            if best is None or (not _help(best, lacking) and slots <= len(leaving)):
                return None
            others.remove(best)
            leaving.append(best)
            for need in lacking:
                lacking[need] -= need.held_by(best)
        leaving = _spared(leaving, must, lacking, slots)
        return _WayOut(row, tuple(leaving), in_words or "room") if leaving else None

    def _proposal(self, index: int, room: WantedRoom, picture: Picture, way_out: _WayOut) -> Proposal:
        name, number = picture.node_name(way_out.row), len(way_out.leaving)
        pods = "a pod that can go elsewhere" if number == 1 else f"{number} pods that can go elsewhere"
        targets: Bools = picture.targets[: picture.cluster.nodes.count] & (self._open(index, picture) == 0)
        targets[way_out.row] = False
        preferred = _narrowest(room, picture.cluster)
        relocations = tuple(Relocation(pod, targets, preferred) for pod in by_size(picture, list(way_out.leaving)))
        reason = f"{room.what} could run on {name}, where {pods} would leave what it lacks: {way_out.lacking}"
        return Proposal(relocations, reason, in_parts=True)


def _narrowest_first(places: Int64s, most: int) -> list[int]:
    """The rows with the fewest places, as many as may be needed; of equal ones, the first."""
    rows = np.flatnonzero(places)
    order = places[rows] * len(places) + rows
    if len(rows) > most:
        nearest = np.argpartition(order, most - 1)[:most]
        rows, order = rows[nearest], order[nearest]
    found: list[int] = rows[np.argsort(order)].tolist()
    return found


def _help(pod: PodRecord, lacking: dict[Need, int]) -> float:
    """How much of what is lacking a pod would leave, in shares of what is needed."""
    return sum(min(need.held_by(pod), lack) / need.amount for need, lack in lacking.items() if lack > 0)


def _spared(
    leaving: Sequence[PodRecord], must: Sequence[PodRecord], lacking: dict[Need, int], slots: int
) -> list[PodRecord]:
    """The pods without those that need not leave, as the others leave enough; the most important are spared first."""
    kept = list(leaving)
    for pod in sorted(leaving, key=lambda pod: (-pod.priority, pod.key, pod.uid)):
        if pod in must or len(kept) <= slots:
            continue
        if all(lack + need.held_by(pod) <= 0 for need, lack in lacking.items()):
            kept.remove(pod)
            for need in lacking:
                lacking[need] += need.held_by(pod)
    return kept


def _cost(way: _WayOut) -> tuple[int, int]:
    return len(way.leaving), sum(pod.priority for pod in way.leaving)


def _narrowest(room: WantedRoom, cluster: Cluster) -> Float64s:
    """``[rows]``: the less is left of what the room needs, the better for those that leave."""
    rows = cluster.nodes.all_rows()
    left: Float64s = np.zeros(len(rows))
    for need in room.needs:
        left = np.maximum(left, need.free(cluster, rows) / np.maximum(need.offered(cluster, rows), 1))
    return -left
