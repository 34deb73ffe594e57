"""Inter-pod affinity and anti-affinity: pods that want to be near, or apart from, other pods."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.arrays import Int32s, Int64s


class PodDemand:
    """One term of some classes (``carriers``), and whom it selects.

    ``unit`` is what a pod misses that has it, where it does not hold at all; ``is_apart`` says that it is one of
    anti-affinity. ``selected`` are the classes that it selects. ``targets`` are the rows that take in pods.

    A pod that wants to be near misses all of it where nobody else is selected in its domain. One that wants to be apart
    misses all of it where somebody is; but where its own like are selected as well, n of them in a domain miss as much
    as n - 1 pods: so many have to go until all are alone.
    """

    def __init__(
        self,
        term: AffinityTerm,
        unit: int,
        *,
        is_apart: bool,
        carriers: Collection[int],
        selected: Collection[int],
        codes: Int32s,
        domains: int,
    ) -> None:
        self._term, self._unit, self._is_apart = term, unit, is_apart
        self._carriers, self._selected = frozenset(carriers), frozenset(selected)
        self._codes, self._domains = codes, domains
        size = int(codes.max(initial=0)) + 1
        # By domain: selected pods, and those of carriers that are and are not selected themselves.
        self._number: Int64s = np.zeros(size, dtype=np.int64)
        self._alike: Int64s = np.zeros(size, dtype=np.int64)
        self._unlike: Int64s = np.zeros(size, dtype=np.int64)
        self._missing: Int64s = np.zeros(size, dtype=np.int64)
        self._sum = self._selected_pods = self._alike_pods = self._unlike_pods = 0

    @property
    def concerns(self) -> Iterable[int]:
        return sorted(self._carriers | self._selected)

    @property
    def missing(self) -> int:
        """What cannot be had is not missing: somebody to be near, and more domains than there are."""
        if not self._is_apart:
            if not self._selected_pods:
                return 0
            is_alone = self._selected_pods == 1 and self._alike_pods == 1
            return self._sum - self._unit * is_alone
        if self._unlike_pods or self._alike_pods != self._selected_pods:
            return self._sum
        return max(0, self._sum - self._unit * max(0, self._alike_pods - self._domains))

    def fill(self, rows: Mapping[int, Int64s]) -> None:
        """The rows of the pods of each class."""
        size = len(self._number)
        for class_id, found in rows.items():
            alike, unlike, selected = self._kinds(class_id)
            number: Int64s = np.bincount(self._codes[found], minlength=size)
            self._number += number * selected
            self._alike += number * alike
            self._unlike += number * unlike
        self._selected_pods, self._alike_pods, self._unlike_pods = (
            int(each.sum()) for each in (self._number, self._alike, self._unlike)
        )
        self._missing = self._misses(self._number, self._alike, self._unlike)
        self._sum = int(self._missing.sum())

    def count(self, class_id: int, row: int, number: int) -> None:
        """So many more pods of a class are on a row."""
        code = self._codes.item(row)
        alike, unlike, selected = self._kinds(class_id)
        self._number[code] += number * selected
        self._alike[code] += number * alike
        self._unlike[code] += number * unlike
        self._selected_pods += number * selected
        self._alike_pods += number * alike
        self._unlike_pods += number * unlike
        missing = self._misses_in(code)
        self._sum += missing - self._missing.item(code)
        self._missing[code] = missing

    def leaving(self, class_id: int) -> Int64s:
        """`[rows]`: by how much less would be missed without one pod of the class on the row."""
        return (self._missing - self._with(class_id, -1))[self._codes]

    def arriving(self, class_id: int) -> Int64s:
        """`[rows]`: by how much more would be missed with one more pod of the class on the row."""
        return (self._with(class_id, 1) - self._missing)[self._codes]

    def complaint(self, class_id: int, row: int) -> str:
        """Who is missing, or in the way."""
        if not self._missing[self._codes[row]]:
            return ""
        near = "apart from" if self._is_apart else "near"
        whom = f"pods with {self._term.selector}" if str(self._term.selector) else "pods"
        where = f"{near} {whom} by {self._term.topology_key}"
        return f"it wants to be {where}" if class_id in self._carriers else f"others want to be {where}"

    def _with(self, class_id: int, number: int) -> Int64s:
        """`[codes]`: what is missed in each domain with so many more pods of the class in it."""
        alike, unlike, selected = self._kinds(class_id)
        return self._misses(
            np.maximum(self._number + number * selected, 0),
            np.maximum(self._alike + number * alike, 0),
            np.maximum(self._unlike + number * unlike, 0),
        )

    def _kinds(self, class_id: int) -> tuple[int, int, int]:
        """How a pod of a class counts: as a carrier that is selected, as one that is not, and as selected."""
        carries, is_selected = class_id in self._carriers, class_id in self._selected
        return int(carries and is_selected), int(carries and not is_selected), int(is_selected)

    def _misses_in(self, code: int) -> int:
        """What is missed in one domain."""
        number, alike, unlike = self._number.item(code), self._alike.item(code), self._unlike.item(code)
        if not self._is_apart:
            is_near = number > 0 and code
            return self._unit * ((0 if number > 1 and code else alike) + (0 if is_near else unlike))
        if not code or not number:
            return 0
        return self._unit * alike * (number - 1) // number + self._unit * unlike

    def _misses(self, number: Int64s, alike: Int64s, unlike: Int64s) -> Int64s:
        """`[codes]`: the same for all; nodes without the label (code 0) are in no domain, and so near nobody."""
        if self._is_apart:
            missed = self._unit * alike * (number - 1) // np.maximum(number, 1) + self._unit * unlike * (number > 0)
            missed[0] = 0
        else:
            missed = self._unit * (alike * (number <= 1) + unlike * (number == 0))
            missed[0] = self._unit * (alike[0] + unlike[0])
        found: Int64s = missed
        return found
