"""Values that the runner caches by pod class between attempts, which only a changed row can change."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np

from podium.cluster.arrays import ChangeLog, Int64s
from podium.cluster.nodes import NodeColumns
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.verdicts import Decoders

Compute = Callable[[Int64s | None], Int64s]
Value = TypeVar("Value")

VERIFIES = False
"""Debug mode: cached values are compared with recomputed ones whenever they are used. Only tests set it."""


def verify(cached: Int64s, recomputed: Int64s) -> None:
    """Raise AssertionError if a cached value is outdated: it depends on something that its change log leaves out."""
    wrong = np.flatnonzero(cached != recomputed).tolist()
    if wrong:
        found = ", ".join(f"{cached[row]} instead of {recomputed[row]} in row {row}" for row in wrong[:4])
        raise AssertionError(f"{len(wrong)} cached values are outdated: {found}")


_NO_ROWS: Int64s = np.empty(0, dtype=np.int64)


@dataclass(slots=True, weakref_slot=True)
class CachedRows:
    """One value for each row, valid as of a position of a change log. ``whole``: one changed row can change all values.

    ``decoders`` explain the values if they are rejections.
    """

    values: Int64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    position: int = -1
    whole: bool = False
    decoders: Decoders = field(default_factory=dict)

    def refresh(self, log: ChangeLog, count: int, compute: Compute) -> Int64s | None:
        """Update the values; return the recomputed rows, None for all.

        ``compute(rows)`` answers for some rows, ``compute(None)`` for all ``count`` rows.
        """
        position = self.position
        if position == log.position and len(self.values) == count:
            if VERIFIES:
                verify(self.values, compute(None))
            return _NO_ROWS
        rows = log.since(position) if position >= 0 and len(self.values) == count else None
        if rows is not None and (self.whole or len(rows) > count // 4):
            rows = None
        if rows is None:
            self.values = compute(None)
        else:
            self.values[rows] = compute(rows)
            if VERIFIES:
                verify(self.values, compute(None))
        # This comes last, so that a plugin that failed is called again.
        self.position = log.position
        return rows


def as_many_as(entries: int, nodes: NodeColumns, *, least: int, most: int = 512) -> Callable[[], int]:
    """Return for how many classes to cache a value for each row: for fewer, the more rows there are.

    The result is at least ``least``, and at most ``most`` as long as these have no more than that many entries
    together.
    """
    return lambda: max(least, min(most, entries // max(nodes.count, 1)))


class CacheByClass(Generic[Value]):
    """A cache for the classes used last, by class and by a key of the caller; an entry ends with its class.

    ``classes`` is the number of classes kept, or a function that returns it.
    """

    def __init__(self, classes: int | Callable[[], int], keys: int = 64) -> None:
        self._most = classes if callable(classes) else lambda: classes
        self._keys = keys
        self._kept: WeakKeyDictionary[PodClass, dict[Hashable, Value]] = WeakKeyDictionary()
        # The class used last and its value, kept at hand until the class ends.
        self._newest: Callable[[], PodClass | None] = _no_class
        self._of_newest: dict[Hashable, Value] = {}

    def find(self, pod_class: PodClass, key: Hashable) -> Value | None:
        """Return the value of a class under a key; None if there is none. This does not count as a use."""
        kept = self._of_newest if self._newest() is pod_class else self._kept.get(pod_class)
        return None if kept is None else kept.get(key)

    def get(self, pod_class: PodClass, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a class under a key; create it if there is none."""
        newest = self._newest
        if newest() is pod_class:
            kept = self._of_newest
        else:
            kept = self._of_newest = self._kept[pod_class] = self._kept.pop(pod_class, {})
            self._newest = ref(pod_class, self._end)
            surplus = len(self._kept) - self._most()
            for oldest in list(islice(self._kept, surplus)) if surplus > 0 else ():
                del self._kept[oldest]
        found = kept.get(key)
        if found is None:
            found = kept[key] = make()
            if len(kept) > self._keys:
                del kept[next(iter(kept))]
        return found

    def _end(self, ended: ref[PodClass]) -> None:
        if ended is self._newest:
            self._newest, self._of_newest = _no_class, {}


def _no_class() -> None:
    return None


class Cells(Protocol):
    """A plugin's grouping of rows for the pods of one class. It must not reference the class.

    While it is current, a row's columns change only when the row or a node changes.
    """

    def is_current(self, pod: PodRecord) -> bool:
        """Return whether the grouping is still valid for ``pod``."""

    def columns(self, view: View) -> Sequence[Int64s]:
        """Return the columns that distinguish the rows of a view: ``[n]`` each."""

    def of_row(self, row: int) -> tuple[int, ...]:
        """Return the entries of one row."""


class CellFilter(Cells, Protocol):
    """The cells of a filter."""

    def fits(self, pod: PodRecord, rows: Sequence[int]) -> Sequence[bool]:
        """Return whether the pod fits, for one row of each of several cells."""


class CellScore(Cells, Protocol):
    """The cells of a score."""

    def score(self, pod: PodRecord, rows: Sequence[int], sizes: Sequence[int]) -> Sequence[int]:
        """Return the normalized scores for one row of each cell; these are all feasible cells, with their sizes."""


class OneCell:
    """A single cell of all nodes: the score does not apply to a pod as long as a condition holds for it."""

    def __init__(self, is_current: Callable[[PodRecord], bool]) -> None:
        self.is_current = is_current

    @classmethod
    def of(cls, pod: PodRecord, condition: Callable[[PodRecord], bool]) -> OneCell | None:
        """Return one cell if the condition holds for ``pod``."""
        return cls(condition) if condition(pod) else None

    def columns(self, view: View) -> Sequence[Int64s]:
        return ()

    def of_row(self, row: int) -> tuple[int, ...]:
        return ()

    def score(self, pod: PodRecord, rows: Sequence[int], sizes: Sequence[int]) -> Sequence[int]:
        return [0] * len(rows)
