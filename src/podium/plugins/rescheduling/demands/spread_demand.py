"""Topology spread: pods that are to lie evenly over domains."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from podium.cluster.arrays import Int64s
from podium.plugins.rescheduling.evenness import moves_needed, surplus
from podium.plugins.spreading.constraints import Constraint, Domains


class SpreadDemand:
    """One constraint of some classes (``carriers``), and the classes (``counted``) whose pods it counts.

    ``unit`` is what one pod misses by it. All miss together as much as so many pods as have to move until it holds;
    where nobody who has it is anywhere, nobody misses anything. Where there are fewer domains than
    ``minDomains``, it holds where none has more than ``maxSkew`` pods.
    """

    def __init__(
        self,
        constraint: Constraint,
        domains: Domains,
        unit: int,
        *,
        carriers: Collection[int],
        counted: Collection[int],
    ) -> None:
        self._constraint, self._unit = constraint, unit
        self._concerns = sorted(counted)
        self._carriers = frozenset(carriers)
        self._carrying = 0
        # Nodes that do not count are in the domain 0, which is none.
        size = len(domains.counted)
        self._codes = np.where(domains.counted, domains.column.codes[:size], 0)
        self._domains = domains.codes[domains.codes != 0]
        self._pods: Int64s = np.zeros(len(domains.exists), dtype=np.int64)
        # How many domains hold a number of pods.
        self._holding = {0: len(self._domains)} if len(self._domains) else {}
        self._missing: int | None = None

    @property
    def concerns(self) -> Iterable[int]:
        return self._concerns

    @property
    def missing(self) -> int:
        if self._missing is None:
            self._missing = self._unit * self._needed(self._holding) if self._carrying else 0
        return self._missing

    def count(self, class_id: int, row: int, number: int) -> None:
        """So many more pods of a class are on a row."""
        self._carrying += number * (class_id in self._carriers)
        self._missing = None
        code = self._codes.item(row)
        if code:
            before = self._pods.item(code)
            self._pods[code] = before + number
            self._holding = _shifted(self._holding, before, number)

    def leaving(self, class_id: int) -> Int64s:
        """`[rows]`: by how much less would be missed without one pod on the row."""
        return -self._changed(class_id, -1)[self._codes]

    def arriving(self, class_id: int) -> Int64s:
        """`[rows]`: by how much more would be missed with one more pod on the row."""
        return self._changed(class_id, 1)[self._codes]

    def complaint(self, class_id: int, row: int) -> str:
        """Over what they lie unevenly."""
        code = self._codes[row]
        if not self.missing or not code or self._pods[code] <= self._pods[self._domains].min():
            return ""
        return f"its like lie unevenly over {self._constraint.key}"

    def _changed(self, class_id: int, number: int) -> Int64s:
        """`[codes]`: what more is missed with so many more pods of a class in a domain.

        Domains with as many pods are alike.
        """
        unit = self._unit if self._carrying + number * (class_id in self._carriers) > 0 else 0
        elsewhere = unit * self._needed(self._holding) - self.missing
        changed: Int64s = np.full(len(self._pods), elsewhere, dtype=np.int64)
        pods = self._pods[self._domains]
        for held in self._holding:
            if held + number >= 0:
                needed = self._needed(_shifted(self._holding, held, number))
                changed[self._domains[pods == held]] = unit * needed - self.missing
        return changed

    def _needed(self, holding: dict[int, int]) -> int:
        if len(self._domains) < self._constraint.min_domains:
            return surplus(holding, self._constraint.max_skew)
        return moves_needed(holding, self._constraint.max_skew)


def _shifted(holding: dict[int, int], held: int, number: int) -> dict[int, int]:
    """How many domains hold a number of pods once a domain that holds ``held`` has so many more."""
    shifted = dict(holding)
    shifted[held] -= 1
    if not shifted[held]:
        del shifted[held]
    shifted[held + number] = shifted.get(held + number, 0) + 1
    return shifted
