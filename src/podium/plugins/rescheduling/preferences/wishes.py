"""All that pods prefer, followed from question to question."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.arrays import Int32s, Int64s
from podium.cluster.pod_class import PodClass
from podium.framework.rescheduling.picture import Picture
from podium.plugins.rescheduling.pod_places import PodPlaces
from podium.plugins.rescheduling.preferences.node_wishes import NodeWishes
from podium.plugins.rescheduling.preferences.pod_wish import PodWish
from podium.plugins.rescheduling.preferences.spread_wish import SpreadWish
from podium.plugins.rescheduling.preferences.wish import MICRO, Wish
from podium.plugins.spreading.constraints import Constraint, Domains, own_constraints


@dataclass(frozen=True, slots=True)
class Weights:
    """How much it counts that a pod misses all of its preferences of a kind; 0 is not at all."""

    node_affinity: float
    pod_affinity: float
    topology_spread: float
    taints: float


class Wishes:
    """The preferences of all pods of a picture, and what is missed of them, in millionths."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._places = PodPlaces()
        self._all: list[Wish] = []
        # By class id, their places in that list.
        self._of_class: dict[int, list[int]] = {}
        # What is missed of each, as it was before what happened to those that are stale.
        self._missing: list[int] = []
        self._stale: set[int] = set()
        self._total = 0

    def follow(self, picture: Picture) -> None:
        """Be those of the picture as it is by now."""
        moved = self._places.follow(picture)
        if moved is None:
            self._begin(picture)
            return
        for class_id, row, number in moved.steps():
            self.count(class_id, row, number)

    @property
    def missing(self) -> int:
        """What is missed of all preferences."""
        for place in self._stale:
            missing = self._all[place].missing
            self._total += missing - self._missing[place]
            self._missing[place] = missing
        self._stale.clear()
        return self._total

    def concerned(self) -> Collection[int]:
        """The classes (ids) that some preference concerns."""
        return self._of_class.keys()

    def missed_classes(self) -> list[int]:
        """The classes that are concerned by a preference of which something is missed, by id."""
        return sorted({class_id for wish in self._all if wish.missing for class_id in wish.concerns})

    def count(self, class_id: int, row: int, number: int) -> None:
        """So many more pods of a class are on a row."""
        for place in self._of_class.get(class_id, ()):
            self._all[place].count(class_id, row, number)
            self._stale.add(place)

    def leaving(self, class_id: int) -> Int64s:
        """`[rows]`: by how much less would be missed without one pod of a class that has wishes on the row."""
        return sum_of([self._all[place].leaving(class_id) for place in self._of_class[class_id]])

    def arriving(self, class_id: int) -> Int64s:
        """`[rows]`: by how much more would be missed with one more pod of such a class on the row."""
        return sum_of([self._all[place].arriving(class_id) for place in self._of_class[class_id]])

    def complaints(self, class_id: int, row: int) -> list[str]:
        """What a pod of a class misses on a row, and makes others miss."""
        found = (self._all[place].complaint(class_id, row) for place in self._of_class[class_id])
        return list(dict.fromkeys(text for text in found if text))

    def _begin(self, picture: Picture) -> None:
        classes = self._places.classes
        self._all = list(self._made(picture, classes))
        self._of_class = {}
        for place, wish in enumerate(self._all):
            for class_id in wish.concerns:
                self._of_class.setdefault(class_id, []).append(place)
        for class_id, rows in self._places.rows_by_class().items():
            for place in self._of_class.get(class_id, ()):
                for row in rows:
                    self._all[place].count(class_id, row, 1)
        self._missing, self._total = [0] * len(self._all), 0
        self._stale = set(range(len(self._all)))

    def _made(self, picture: Picture, classes: Mapping[int, PodClass]) -> Iterator[Wish]:
        weights = self._weights
        yield NodeWishes(picture, classes.values(), weights.node_affinity, weights.taints)
        if weights.pod_affinity:
            yield from _pod_wishes(picture, classes, weights.pod_affinity)
        if weights.topology_spread:
            yield from _spread_wishes(picture, classes, weights.topology_spread)


def sum_of(parts: list[Int64s]) -> Int64s:
    """The sum of arrays of the same shape, of which there is one at least."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _pod_wishes(picture: Picture, classes: Mapping[int, PodClass], weight: float) -> Iterator[Wish]:
    """A wish for each preferred term, and each share that it has in all that its carriers prefer."""
    cluster = picture.cluster
    carriers: dict[tuple[AffinityTerm, int, bool], list[int]] = {}
    for class_id, pod_class in classes.items():
        total = sum(abs(weighted.weight) for weighted in pod_class.preferred)
        for weighted in pod_class.preferred:
            if weighted.weight:
                unit = round(MICRO * weight * abs(weighted.weight) / total)
                carriers.setdefault((weighted.term, unit, weighted.weight < 0), []).append(class_id)
    domains = _DomainsOfKeys(picture)
    for (term, unit, is_apart), carrying in carriers.items():
        selected = [
            pod_class.id
            for pod_class in cluster.classes.candidates(term.needs)
            if pod_class.id in classes
            and term.selects_for_owner(pod_class.namespace, pod_class.labels, cluster.namespaces)
        ]
        codes, number = domains.of(term.topology_key)
        yield PodWish(term, unit, is_apart=is_apart, carriers=carrying, selected=selected, codes=codes, domains=number)


class _DomainsOfKeys:
    """The domains of topology keys: a code for each row, and how many have a node that takes in pods."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._known: dict[str, tuple[Int32s, int]] = {}

    def of(self, key: str) -> tuple[Int32s, int]:
        known = self._known.get(key)
        if known is None:
            nodes = self._picture.cluster.nodes
            codes = nodes.labels(key).codes[: nodes.count].copy()
            usable = codes[self._picture.targets[: nodes.count] & (codes != 0)]
            known = self._known[key] = codes, len(set(usable.tolist()))
        return known


def _spread_wishes(picture: Picture, classes: Mapping[int, PodClass], weight: float) -> Iterator[Wish]:
    """A wish for each soft constraint of pods' own, and each set of nodes that it counts.

    Those that a scheduler adds for pods without any are its own preferences, not the pods'.
    """
    cluster = picture.cluster
    found: dict[tuple[Constraint, bytes, int], Domains] = {}
    for pod_class in classes.values():
        if pod_class.spec.topology_spread_constraints:
            constraints = own_constraints(pod_class, "ScheduleAnyway")
            domains = constraints.domains(cluster, pod_class)
            for constraint, where in zip(constraints.constraints, domains, strict=True):
                if constraint.matches_self and constraint.predicate.selector.requirements:
                    unit = round(MICRO * weight / len(constraints))
                    found.setdefault((constraint, where.counted.tobytes(), unit), where)
    for (constraint, _, unit), where in found.items():
        counted = _matching(constraint, cluster.classes.candidates(constraint.predicate.needs), picture)
        yield SpreadWish(constraint, where, unit, [class_id for class_id in counted if class_id in classes])


def _matching(constraint: Constraint, candidates: Iterable[PodClass], picture: Picture) -> list[int]:
    namespaces = picture.cluster.namespaces
    return [candidate.id for candidate in candidates if constraint.predicate.matches(candidate, namespaces)]
