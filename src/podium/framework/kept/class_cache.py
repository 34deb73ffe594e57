"""What the runner keeps about a pod class between attempts: answers that only a changed row can change."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.change_log import ChangeLog
from podium.cluster.nodes import NodeColumns
from podium.cluster.pod_class import PodClass
from podium.framework.verdicts import Decoders

Compute = Callable[[Int64s | None], Int64s]
Value = TypeVar("Value")


@dataclass(slots=True, weakref_slot=True)
class KeptRows:
    """One value a row, right as of a position of a change log. ``whole``: one changed row can change all values.

    ``decoders`` says what the values mean where they are refusals.
    """

    values: Int64s
    position: int = -1
    whole: bool = False
    decoders: Decoders = field(default_factory=dict)

    def refresh(self, log: ChangeLog, count: int, compute: Compute) -> Int64s | None:
        """Bring the values up to date; returns the rows recomputed, None for all.

        ``compute(rows)`` answers for some rows, ``compute(None)`` for all ``count`` rows.
        """
        position = self.position
        if position == log.position and len(self.values) == count:
            return np.empty(0, dtype=np.int64)
        rows = log.since(position) if position >= 0 and len(self.values) == count else None
        if rows is not None and (self.whole or len(rows) > count // 4):
            rows = None
        if rows is None:
            self.values = compute(None)
        else:
            self.values[rows] = compute(rows)
        # Only now: a plugin that failed must be asked again.
        self.position = log.position
        return rows


def as_many_as(entries: int, nodes: NodeColumns, *, least: int, most: int = 512) -> Callable[[], int]:
    """Of how many classes to keep something that has an entry for each row: of the fewer, the more rows there are.

    ``least`` at any number of rows, and more, up to ``most``, where they have no more than so many entries together.
    """
    return lambda: max(least, min(most, entries // max(nodes.count, 1)))


class KeptByClass(Generic[Value]):
    """What is kept of the classes used last, by class and by a key of the user's choice; it goes with its class.

    ``classes`` is of how many classes something is kept, or says of how many at the time.
    """

    def __init__(self, classes: int | Callable[[], int], keys: int = 64) -> None:
        self._most = classes if callable(classes) else lambda: classes
        self._keys = keys
        self._kept: WeakKeyDictionary[PodClass, dict[Hashable, Value]] = WeakKeyDictionary()
        # The class asked about last and what is kept of it, at hand until the class ends.
        self._newest: Callable[[], PodClass | None] = _nobody
        self._of_newest: dict[Hashable, Value] = {}

    def find(self, pod_class: PodClass, key: Hashable) -> Value | None:
        """What is kept of a class under a key; None if there is nothing. That is no use of it."""
        kept = self._kept.get(pod_class)
        return None if kept is None else kept.get(key)

    def get(self, pod_class: PodClass, key: Hashable, make: Callable[[], Value]) -> Value:
        """What is kept of a class under a key; made if there is nothing."""
        if self._newest() is pod_class:
            kept = self._of_newest
        else:
            kept = self._kept.pop(pod_class) if pod_class in self._kept else {}
            self._kept[pod_class] = self._of_newest = kept
            self._newest = ref(pod_class, self._end)
            if len(self._kept) > self._most():
                self._drop_oldest()
        found = kept.get(key)
        if found is None:
            found = kept[key] = make()
            if len(kept) > self._keys:
                del kept[next(iter(kept))]
        return found

    def _end(self, ended: ref[PodClass]) -> None:
        """A class has ended that was the newest."""
        if ended is self._newest:
            self._newest, self._of_newest = _nobody, {}

    def _drop_oldest(self) -> None:
        oldest = list(islice(self._kept, len(self._kept) - self._most()))
        for pod_class in oldest:
            del self._kept[pod_class]


class ClassCache:
    """The kept rows of the classes used last, by class and by a key of the user's choice."""

    def __init__(self, limit: int | Callable[[], int]) -> None:
        self._kept: KeptByClass[KeptRows] = KeptByClass(limit)

    def rows(self, pod_class: PodClass, key: Hashable, *, whole: bool = False) -> KeptRows:
        """What is kept of a class under a key; empty at first."""
        return self._kept.get(pod_class, key, _whole if whole else _row_by_row)


def _nobody() -> None:
    return None


def _whole() -> KeptRows:
    return KeptRows(np.empty(0, dtype=np.int64), whole=True)


def _row_by_row() -> KeptRows:
    return KeptRows(np.empty(0, dtype=np.int64))
