"""Required inter-pod affinity: pods that must be near others whom all of their terms select."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.plugins.rescheduling.demands.demand import MICRO


class NearDemand:
    """The required terms of some classes (``carriers``), and the classes that all of them select (``selected``).

    ``keys`` are the terms' topology keys, and ``codes`` tell the domains of each apart (`[rows]`). A carrier misses its
    company where in some domain of its node there is nobody else whom all terms select. When there is none of them
    anywhere, the first of a group that selects itself may be alone (interpodaffinity/filtering.go,
    satisfyPodAffinity).
    """

    def __init__(
        self, keys: Sequence[str], codes: Sequence[Int32s], carriers: Collection[int], selected: Collection[int]
    ) -> None:
        self._keys, self._codes = keys, codes
        self._carriers, self._selected = frozenset(carriers), frozenset(selected)
        size = len(codes[0])
        self._labelled: Bools = np.logical_and.reduce([each != 0 for each in codes])
        self._domains: list[Int64s] = [np.zeros(int(each.max(initial=0)) + 1, dtype=np.int64) for each in codes]
        # By row, the carriers that are selected themselves, and those that are not.
        self._alike: Int64s = np.zeros(size, dtype=np.int64)
        self._unlike: Int64s = np.zeros(size, dtype=np.int64)
        self._pods = 0
        self._missing: int | None = None

    @property
    def concerns(self) -> Iterable[int]:
        return sorted(self._carriers | self._selected)

    @property
    def missing(self) -> int:
        if self._missing is None:
            alone = int((self._alike * self._is_without(1)).sum())
            self._missing = MICRO * (alone + int((self._unlike * self._is_without(0)).sum()))
        return self._missing

    def fill(self, rows: Mapping[int, Int64s]) -> None:
        """The rows of the pods of each class."""
        for class_id, found in rows.items():
            for row in found.tolist():
                self.count(class_id, row, 1)

    def count(self, class_id: int, row: int, number: int) -> None:
        """So many more pods of a class are on a row."""
        is_selected = class_id in self._selected
        if class_id in self._carriers:
            (self._alike if is_selected else self._unlike)[row] += number
        if is_selected:
            # Upstream counts whom it selects by domains, and finds nobody on nodes without the keys.
            self._pods += number * any(codes[row] for codes in self._codes)
            for domain, codes in zip(self._domains, self._codes, strict=True):
                domain[codes[row]] += number
        self._missing = None

    def leaving(self, class_id: int) -> Int64s:
        """`[rows]`: whether a pod of the class misses its company there. That others lose it is not looked at."""
        if class_id not in self._carriers:
            return np.zeros(len(self._labelled), dtype=np.int64)
        return MICRO * self._is_without(int(class_id in self._selected)).astype(np.int64)

    def arriving(self, class_id: int) -> Int64s:
        """`[rows]`: whether a pod of the class would miss its company there."""
        if class_id not in self._carriers:
            return np.zeros(len(self._labelled), dtype=np.int64)
        return MICRO * self._is_without(0, may_be_first=class_id in self._selected).astype(np.int64)

    def complaint(self, class_id: int, row: int) -> str:
        """By which keys company is missing."""
        if class_id not in self._carriers or not self.leaving(class_id)[row]:
            return ""
        return f"nobody is near whom it must be near by {' and '.join(dict.fromkeys(self._keys))}"

    def _is_without(self, own: int, *, may_be_first: bool = False) -> Bools:
        """`[rows]`: where there is no company beside ``own`` pods of one's own."""
        company = self._labelled.copy()
        if self._pods > own or not (own or may_be_first):
            for domain, codes in zip(self._domains, self._codes, strict=True):
                company &= domain[codes] > own
        return ~company
