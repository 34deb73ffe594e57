"""Topology spread: pods that are to lie evenly over domains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from podium.cluster.arrays import Int64s
from podium.plugins.rescheduling.demands.evenness import Evenness, evenness, surplus
from podium.plugins.spreading.constraints import Constraint, Domains


class SpreadDemand:
    """One constraint of some classes (``carriers``), and the classes (``counted``) whose pods it counts.

    ``unit`` is what one pod misses by it. All miss together as much as so many pods as have to move until it holds, and
    no more than those of its carriers that are in domains which lead by too much: others lie as they should, however
    unevenly pods lie that do not ask for it. Where there are fewer domains than ``minDomains``, it holds where none has
    more than ``maxSkew`` pods.
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
        self._carriers_in: Int64s = np.zeros(len(domains.exists), dtype=np.int64)
        # How many domains hold a number of pods.
        self._holding = {0: len(self._domains)} if len(self._domains) else {}
        # None until they are asked for.
        self._evenness: Evenness | None = None
        self._missing: int | None = None

    @property
    def concerns(self) -> Iterable[int]:
        return self._concerns

    @property
    def missing(self) -> int:
        if self._missing is None:
            moves = self._known().moves if self._carrying else 0
            self._missing = self._unit * min(moves, self._carriers_beyond()) if moves else 0
        return self._missing

    def fill(self, rows: Mapping[int, Int64s]) -> None:
        """The rows of the pods of each class."""
        for class_id, found in rows.items():
            number: Int64s = np.bincount(self._codes[found], minlength=len(self._pods))
            # Nodes that do not count are in no domain; who carries the constraint there does so all the same.
            self._carrying += len(found) * (class_id in self._carriers)
            number[0] = 0
            self._pods += number
            self._carriers_in += number * (class_id in self._carriers)
        held, domains = np.unique(self._pods[self._domains], return_counts=True)
        self._holding = dict(zip(held.tolist(), domains.tolist(), strict=True))
        self._evenness = self._missing = None

    def count(self, class_id: int, row: int, number: int) -> None:
        """So many more pods of a class are on a row."""
        self._carrying += number * (class_id in self._carriers)
        self._evenness = self._missing = None
        code = self._codes.item(row)
        if code:
            before = self._pods.item(code)
            self._pods[code] = before + number
            self._carriers_in[code] += number * (class_id in self._carriers)
            self._holding = _shifted(self._holding, before, number)

    def leaving(self, class_id: int) -> Int64s:
        """`[rows]`: about by how much less would be missed without one pod on the row.

        Whose domain has more than it should counts all, whose domain has enough to give half of it.
        """
        if not self.missing:
            return np.zeros(len(self._codes), dtype=np.int64)
        by_pods = {pods: max(self._surfeit(pods)) * self._unit // 2 for pods in self._holding}
        return self._by_row(by_pods)

    def arriving(self, class_id: int) -> Int64s:
        """`[rows]`: about by how much more would be missed with one more pod on the row.

        Whose domain has as much as it should counts all, whose domain has enough already half of it.
        """
        if not (self._carrying or class_id in self._carriers):
            return np.zeros(len(self._codes), dtype=np.int64)
        if not self.missing:
            before = self._known().moves if self._carrying else 0
            after = {pods: self._evenness_of(_shifted(self._holding, pods, 1)).moves for pods in self._holding}
            return self._by_row({pods: self._unit * max(moves - before, 0) for pods, moves in after.items()})
        return self._by_row({pods: min(self._surfeit(pods + 1)) * self._unit // 2 for pods in self._holding})

    def complaint(self, class_id: int, row: int) -> str:
        """Over what they lie unevenly."""
        code = self._codes[row]
        if not self.missing or not code or self._pods[code] <= self._pods[self._domains].min():
            return ""
        return f"its like lie unevenly over {self._constraint.key}"

    def _carriers_beyond(self) -> int:
        """How many of those who have the constraint are in domains that lead by too much: nobody else breaks it."""
        lowest = min(self._holding) if len(self._domains) >= self._constraint.min_domains else 0
        beyond = self._pods[self._domains] - lowest > self._constraint.max_skew
        return int(self._carriers_in[self._domains[beyond]].sum())

    def _known(self) -> Evenness:
        if self._evenness is None:
            self._evenness = self._evenness_of(self._holding)
        return self._evenness

    def _evenness_of(self, holding: dict[int, int]) -> Evenness:
        if len(self._domains) < self._constraint.min_domains:
            return Evenness(surplus(holding, self._constraint.max_skew), (0,))
        return evenness(holding, self._constraint.max_skew)

    def _surfeit(self, pods: int) -> list[int]:
        """Whether the last of so many pods in a domain is too many (2), could be spared (1) or is needed (0).

        That is for each number of pods that domains may be meant to hold at least.
        """
        skew = self._constraint.max_skew
        return [2 if pods > lowest + skew else int(pods > lowest) for lowest in self._known().lowest]

    def _by_row(self, by_pods: dict[int, int]) -> Int64s:
        """`[rows]`: what goes for domains with so many pods; 0 for nodes that do not count."""
        by_code: Int64s = np.zeros(len(self._pods), dtype=np.int64)
        pods = self._pods[self._domains]
        for held, value in by_pods.items():
            by_code[self._domains[pods == held]] = value
        return by_code[self._codes]


def _shifted(holding: dict[int, int], held: int, number: int) -> dict[int, int]:
    """How many domains hold a number of pods once a domain that holds ``held`` has so many more."""
    shifted = dict(holding)
    shifted[held] -= 1
    if not shifted[held]:
        del shifted[held]
    shifted[held + number] = shifted.get(held + number, 0) + 1
    return shifted
