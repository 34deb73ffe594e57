"""What the runner keeps about a pod class between attempts: answers that only a changed row can change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.change_log import ChangeLog
from podium.framework.verdicts import Decoders

Compute = Callable[[Int64s | None], Int64s]


@dataclass(slots=True)
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


class ClassCache:
    """The kept rows of the classes used last, by class and by a key of the user's choice."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[int, dict[object, KeptRows]] = OrderedDict()

    def rows(self, pod_class: int, key: object, *, whole: bool = False) -> KeptRows:
        """What is kept of a class under a key; empty at first."""
        kept = self._kept.get(pod_class)
        if kept is None:
            kept = self._kept[pod_class] = {}
            if len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(pod_class)
        found = kept.get(key)
        if found is None:
            found = kept[key] = KeptRows(np.empty(0, dtype=np.int64), whole=whole)
        return found
