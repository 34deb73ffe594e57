"""All demands of pods, updated from call to call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from operator import add

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.bounds import Departures, ObjectiveBound, Reliefs
from podium.framework.rescheduling.policy import Picture, Proposal, Relocation
from podium.plugins.rescheduling.node_use import PodPlaces, accepting, accepting_with_room, has_room, rough_fit

MICRO = 10**6
"""The cost of one pod is counted in whole millionths, so that sums do not depend on their order."""


class Demand(ABC):
    """Something that pods prefer or require, counted over all of them.

    ``concerns`` are the classes (ids), ascending, whose pods have the demand or are selected by it. ``name`` describes
    demands that a bound relaxes.
    """

    name = ""

    def __init__(self, concerns: Iterable[int]) -> None:
        self.concerns = sorted(concerns)

    @property
    @abstractmethod
    def missing(self) -> int:
        """Return what all pods lack together, in millionths of a badly placed pod."""

    @abstractmethod
    def fill(self, rows: Mapping[int, Int64s]) -> None:
        """Set the rows of the pods of each class (id) that it concerns, in place of an empty count."""

    @abstractmethod
    def count(self, class_id: int, row: int, number: int) -> None:
        """Add ``number`` pods of a class that it concerns to a row."""

    @abstractmethod
    def leaving(self, class_id: int) -> Int64s:
        """Return `[rows]` by how much less would be missing without one pod of the class in the row."""

    @abstractmethod
    def arriving(self, class_id: int) -> Int64s:
        """Return `[rows]` by how much more would be missing with another pod of the class in the row."""

    @abstractmethod
    def complaint(self, class_id: int, row: int) -> str:
        """Return what a pod of the class lacks in a row, or makes others lack, as text; "" if nothing."""

    def relief(self, departures: Departures, reliefs: Reliefs, price: float) -> float | None:
        """Return how much is missing, in pods, and add to ``reliefs`` by how much less as movable pods leave.

        Whichever pods move, at least that less their reliefs is missing. ``price`` is that of a move, which helps to
        choose among such numbers. None if there are none; nothing is added then.
        """
        return None


Maker = Callable[[Picture, Mapping[int, PodClass]], Iterable[Demand]]
"""Creates the demands of some classes, by id, with no pods counted yet."""


class Demands:
    """The demands of all pods of a picture, created by ``make``, and what is missing of them, in millionths."""

    def __init__(self, make: Maker) -> None:
        self._make = make
        self._places = PodPlaces()
        self.all: list[Demand] = []
        # Indices into that list, by class id.
        self.of_class: dict[int, list[int]] = {}
        # The unmet part of each demand, before the changes to stale ones.
        self._missing: list[int] = []
        self._stale: set[int] = set()
        self._total = 0

    def follow(self, picture: Picture) -> None:
        """Update the demands to the present state of the picture."""
        moved = self._places.follow(picture)
        for class_id, row, number in moved or ():
            self.count(class_id, row, number)
        if moved is not None:
            return
        self.all = list(self._make(picture, self._places.classes))
        self.of_class = {}
        rows = self._places.rows_by_class()
        for place, demand in enumerate(self.all):
            for class_id in demand.concerns:
                self.of_class.setdefault(class_id, []).append(place)
            demand.fill({class_id: rows[class_id] for class_id in demand.concerns if class_id in rows})
        self._missing, self._total = [0] * len(self.all), 0
        self._stale = set(range(len(self.all)))

    @property
    def missing(self) -> int:
        for place in self._stale:
            missing = self.all[place].missing
            self._total += missing - self._missing[place]
            self._missing[place] = missing
        self._stale.clear()
        return self._total

    def count(self, class_id: int, row: int, number: int) -> None:
        for place in self.of_class.get(class_id, ()):
            self.all[place].count(class_id, row, number)
            self._stale.add(place)

    def leaving(self, class_id: int) -> Int64s:
        return reduce(add, [self.all[place].leaving(class_id) for place in self.of_class[class_id]])

    def arriving(self, class_id: int) -> Int64s:
        return reduce(add, [self.all[place].arriving(class_id) for place in self.of_class[class_id]])

    def arriving_elsewhere(self, pod: PodRecord) -> Int64s:
        """Return `[rows]` by how much more would be missing with the pod there, after it has left its place."""
        class_id, row = pod.pod_class.id, pod.row
        self.count(class_id, row, -1)
        arriving = self.arriving(class_id)
        self.count(class_id, row, 1)
        return arriving

    def complaints(self, class_id: int, row: int) -> list[str]:
        """Return what a pod of a class lacks in a row, and makes others lack."""
        found = (self.all[place].complaint(class_id, row) for place in self.of_class[class_id])
        return list(dict.fromkeys(text for text in found if text))


# The most pods in a row for which no other pod could make room.
_MOST_IN_VAIN = 32

Reason = Callable[[Picture, PodRecord, Sequence[str]], str]
"""Returns why a pod should leave, from what it lacks in its place; "" if it should not."""


class DemandPolicy:
    """A policy whose objective is how much of its demands is missing.

    It proposes pods that lack less elsewhere, or make others lack less; ``reason`` decides about each. Pods that find
    room by themselves come first, then those for which another pod would have to make room.
    """

    def __init__(self, demands: Demands, reason: Reason) -> None:
        self._demands = demands
        self._reason = reason

    def objective(self, picture: Picture) -> float:
        self._demands.follow(picture)
        return self._demands.missing / MICRO

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        """Return the sum of what is missing of each demand after a pod's departure; nothing for those without relief.

        A demand of which several repair the same pods gets a part of the price.
        """
        self._demands.follow(departures.picture)
        base, relaxed, number = 0.0, dict[str, None](), len(departures.pods)
        reliefs = Reliefs(np.zeros(number), np.arange(number), np.zeros(number, dtype=np.int64))
        lacking = [demand for demand in self._demands.all if demand.missing]
        sharing = Counter(class_id for demand in lacking for class_id in demand.concerns)
        for demand in lacking:
            share = max(sharing[class_id] for class_id in demand.concerns)
            missing = demand.relief(departures, reliefs, price / share)
            if missing is None:
                relaxed[demand.name] = None
            base += missing or 0.0
        return ObjectiveBound(base=base, relaxed=tuple(relaxed), reliefs=reliefs)

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Yield the moves by their gain, the largest first; ties by importance, the least first, then by key."""
        yield from self._single(picture)
        yield from self._paired(picture)

    def _single(self, picture: Picture) -> Iterator[Proposal]:
        self._demands.follow(picture)
        refused: set[tuple[int, int]] = set()
        for pod in self._candidates(picture, need_room=True):
            self._demands.follow(picture)
            place = (pod.pod_class.id, pod.row)
            if place in refused:
                continue
            found = self._proposal(picture, pod)
            if found is None:
                refused.add(place)
                continue
            yield found
            if picture.cluster.placed.get(pod.uid, pod).row == place[1]:
                # Equal pods would fare no better while no other pod moves.
                refused.add(place)
            else:
                refused.clear()

    def _paired(self, picture: Picture) -> Iterator[Proposal]:
        """Yield for each of the pods the pairs with a pod that may make room for it, until that is in vain."""
        self._demands.follow(picture)
        refused: set[tuple[int, int]] = set()
        pairs, in_vain = MatchedPairs(self._demands, picture), 0
        for pod in self._candidates(picture, need_room=False):
            place = (pod.pod_class.id, pod.row)
            if place in refused or not picture.may_leave(pod):
                continue
            for relocations in pairs.of(pod):
                other = relocations[1].pod
                if not (pairs.may_move(pod) and pairs.may_move(other)):
                    continue
                self._demands.follow(picture)
                reason = self._reason(picture, pod, self._demands.complaints(*place))
                if not reason:
                    break
                giving = f"{other.key} makes room for it on {picture.node_name(other.row)}"
                yield Proposal(relocations, f"{reason}, and {giving}")
            in_vain = in_vain + 1 if pairs.may_move(pod) else 0
            if in_vain == _MOST_IN_VAIN:
                return
            if in_vain:
                refused.add(place)

    def _candidates(self, picture: Picture, *, need_room: bool) -> list[PodRecord]:
        """Return the pods that would gain on another node that may take them; with ``need_room`` it has room."""
        places = accepting_with_room if need_room else accepting
        found: list[tuple[int, PodRecord]] = []
        for class_id in sorted({id_ for demand in self._demands.all if demand.missing for id_ in demand.concerns}):
            arriving, leaving = self._demands.arriving(class_id), self._demands.leaving(class_id)
            # Usually no pod of a class gains anywhere, regardless of room.
            pods = self._pods_of(picture, class_id, leaving, int(np.min(arriving)))
            arriving = arriving[places(picture, pods[0].pod_class)] if pods else arriving[:0]
            if not len(arriving):
                continue
            # In a domain that lacks pods, the arrival repairs something, from any node where the pod is not missed.
            lowest = int(np.min(arriving))
            found += [
                (lowest - gained, pod)
                for pod in pods
                if (gained := leaving.item(pod.row)) > lowest and picture.is_movable(pod)
            ]
        found.sort(key=lambda entry: (entry[0], entry[1].priority, entry[1].key, entry[1].uid))
        return [pod for _, pod in found]

    def _pods_of(self, picture: Picture, class_id: int, leaving: Int64s, least: int) -> list[PodRecord]:
        """Return the pods of a class whose departure reduces what is missing by more than ``least``."""
        pods = picture.cluster.pods
        slots = np.fromiter(pods.of_class.get(class_id, ()), dtype=np.int64)
        rows = pods.row[slots]
        chosen = slots[(rows >= 0) & ~pods.terminating[slots] & (leaving[rows] > least)]
        return [pods.record(slot) for slot in chosen.tolist()]

    def _proposal(self, picture: Picture, pod: PodRecord) -> Proposal | None:
        """Return the pod's move to where it gains in the present state; None if it gains nowhere."""
        demands, class_id, row = self._demands, pod.pod_class.id, pod.row
        leaving = int(demands.leaving(class_id)[row])
        complaints = demands.complaints(class_id, row)
        arriving = demands.arriving_elsewhere(pod)
        targets = rough_fit(picture, pod) & (arriving < leaving)
        reason = self._reason(picture, pod, complaints) if targets.any() else ""
        if not reason:
            return None
        relocation = Relocation(pod, targets, np.asarray(-arriving, dtype=np.float64))
        return Proposal((relocation,), reason, anew=lambda: self._again(picture, pod.uid))

    def _again(self, picture: Picture, uid: str) -> Proposal | None:
        """Return the move of a pod in the present state; None if it gains nothing any more."""
        self._demands.follow(picture)
        pod = picture.cluster.placed.get(uid)
        found = None if pod is None else self._proposal(picture, pod)
        return None if found is None else replace(found, anew=None)


# For one pod: the most nodes examined, the most pods on them that are tried, and the most pairs proposed.
_MOST_NODES = 64
_MOST_ASKED = 12


class MatchedPairs:
    """Finds the pods whose place a pod should take, in the state of a picture."""

    def __init__(self, demands: Demands, picture: Picture) -> None:
        self._demands = demands
        self._picture = picture

    def may_move(self, pod: PodRecord) -> bool:
        """Return whether a pod is still where it was found and may be moved."""
        return self._picture.cluster.placed.get(pod.uid) is pod and self._picture.is_movable(pod)

    def of(self, pod: PodRecord) -> list[tuple[Relocation, Relocation]]:
        """Return the best pairs: those whose other pod is the least important and loses the least, then by its key.

        Only full nodes count. No more important pod makes room, none without budget, and none that would lose as much
        as is gained.
        """
        self._demands.follow(self._picture)
        found: list[tuple[int, int, str, str, tuple[Relocation, Relocation]]] = []
        for other, gain in islice(self._others(pod), _MOST_ASKED):
            refuge = self._refuge(other, pod)
            loss = self._loss(other, refuge)
            if loss is not None and loss < gain:
                targets = np.zeros(len(refuge), dtype=np.bool_)
                targets[other.row] = True
                pair = Relocation(pod, targets), Relocation(other, refuge)
                found.append((other.priority, loss - gain, other.key, other.uid, pair))
        return [entry[-1] for entry in sorted(found, key=lambda entry: entry[:-1])[:3]]

    def _others(self, pod: PodRecord) -> Iterator[tuple[PodRecord, int]]:
        """Yield the pods that free enough room on better nodes, by importance, then key, with the gain there."""
        cluster, found = self._picture.cluster, list[tuple[PodRecord, int]]()
        for row, gain in self._full_nodes(pod):
            at = np.array([row], dtype=np.int64)
            found += [
                (other, gain)
                for other in cluster.pods_on(row)
                if other.priority <= pod.priority
                and not other.terminating
                and has_room(self._picture, pod.pod_class, at, other)
            ]
        found.sort(key=lambda entry: (entry[0].priority, -entry[1], entry[0].key, entry[0].uid))
        picture = self._picture
        return (pair for pair in found if picture.is_movable(pair[0]) and picture.may_leave(pair[0]))

    def _full_nodes(self, pod: PodRecord) -> list[tuple[int, int]]:
        """Return the rows without room that beat the present one, by gain, then name: others were tried before."""
        choice = accepting(self._picture, pod.pod_class)
        choice[pod.row] = False
        rows = np.flatnonzero(choice).astype(np.int64)
        leaving = int(self._demands.leaving(pod.pod_class.id)[pod.row])
        gains = leaving - self._demands.arriving_elsewhere(pod)[rows]
        gains[has_room(self._picture, pod.pod_class, rows)] = 0
        better = [(row, gain) for row, gain in zip(rows.tolist(), gains.tolist(), strict=True) if gain > 0]
        better.sort(key=lambda entry: (-entry[1], self._picture.node_name(entry[0])))
        return better[:_MOST_NODES]

    def _refuge(self, other: PodRecord, pod: PodRecord) -> Bools:
        """Return `[rows]` where the other pod may go, which includes the place that the first one leaves."""
        fits = rough_fit(self._picture, other)
        left = np.zeros(len(fits), dtype=np.bool_)
        left[pod.row] = True
        if accepting(self._picture, other.pod_class, left)[pod.row]:
            at = np.array([pod.row], dtype=np.int64)
            fits[pod.row] = bool(has_room(self._picture, other.pod_class, at, pod)[0])
        return fits

    def _loss(self, other: PodRecord, refuge: Bools) -> int | None:
        """Return how much more is missing with the other pod in its best target; None if it has none."""
        if not refuge.any():
            return None
        class_id = other.pod_class.id
        if class_id not in self._demands.of_class:
            return 0
        leaving = int(self._demands.leaving(class_id)[other.row])
        return int(self._demands.arriving_elsewhere(other)[refuge].min()) - leaving
