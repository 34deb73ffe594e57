"""All that pods ask of their places, followed from question to question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from podium.cluster.arrays import Int64s
from podium.cluster.pod_class import PodClass
from podium.framework.rescheduling.linear import LinearForm, Movables, sum_of_forms
from podium.framework.rescheduling.picture import Picture
from podium.plugins.rescheduling.demands.demand import Demand, LinearDemand
from podium.plugins.rescheduling.parts.pod_places import PodPlaces

_IN_WORDS = {
    "NearDemand": "required affinity to pods",
    "PodDemand": "affinity and anti-affinity to pods",
    "SpreadDemand": "topology spread",
}
Maker = Callable[[Picture, Mapping[int, PodClass]], Iterable[Demand]]
"""Makes the demands of some classes, by id, as they are where no pod is anywhere yet."""


class Demands:
    """What all pods of a picture ask, as ``make`` says, and what is missed of it, in millionths."""

    def __init__(self, make: Maker) -> None:
        self._make = make
        self._places = PodPlaces()
        self._all: list[Demand] = []
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
        """What is missed of all demands."""
        for place in self._stale:
            missing = self._all[place].missing
            self._total += missing - self._missing[place]
            self._missing[place] = missing
        self._stale.clear()
        return self._total

    def linear(self, movables: Movables) -> LinearForm:
        """What would be missed of all demands, as far as they can say it."""
        self.follow(movables.picture)
        forms = [demand.linear(movables) for demand in self._all if isinstance(demand, LinearDemand)]
        others = {type(demand).__name__ for demand in self._all if not isinstance(demand, LinearDemand)}
        return sum_of_forms([*forms, LinearForm(left_out=tuple(_IN_WORDS.get(name, name) for name in sorted(others)))])

    def concerned(self) -> Collection[int]:
        """The classes (ids) that some demand concerns."""
        return self._of_class.keys()

    def missed_classes(self) -> list[int]:
        """The classes that are concerned by a demand of which something is missed, by id."""
        return sorted({class_id for demand in self._all if demand.missing for class_id in demand.concerns})

    def count(self, class_id: int, row: int, number: int) -> None:
        """So many more pods of a class are on a row."""
        for place in self._of_class.get(class_id, ()):
            self._all[place].count(class_id, row, number)
            self._stale.add(place)

    def leaving(self, class_id: int) -> Int64s:
        """`[rows]`: by how much less would be missed without one pod of a class that demands concern on the row."""
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
        self._all = list(self._make(picture, classes))
        self._of_class = {}
        for place, demand in enumerate(self._all):
            for class_id in demand.concerns:
                self._of_class.setdefault(class_id, []).append(place)
        rows = self._places.rows_by_class()
        for demand in self._all:
            demand.fill({class_id: rows[class_id] for class_id in demand.concerns if class_id in rows})
        self._missing, self._total = [0] * len(self._all), 0
        self._stale = set(range(len(self._all)))


def sum_of(parts: list[Int64s]) -> Int64s:
    """The sum of arrays of the same shape, of which there is one at least."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
