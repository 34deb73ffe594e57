"""What pods ask of nodes by themselves: labels that they want, taints that they do not tolerate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.framework.rescheduling.linear import LinearForm, Movables
from podium.plugins.rescheduling.demands.demand import MICRO


@dataclass(frozen=True, slots=True)
class NodeDemand:
    """What a pod misses by row: ``misses`` is `[rows]`, in millionths.

    ``complaints`` are what may be wrong with a node, in words, and where it is (`[rows]` each); the first that holds
    for a row is told.
    """

    misses: Int64s
    complaints: tuple[tuple[Bools, str], ...]


class NodeDemands:
    """What the pods of each class (id) ask of nodes."""

    def __init__(self, of_class: Mapping[int, NodeDemand]) -> None:
        self._of_class = of_class
        self.missing = 0

    @property
    def concerns(self) -> Iterable[int]:
        return self._of_class

    def fill(self, rows: Mapping[int, Int64s]) -> None:
        """The rows of the pods of each class."""
        self.missing = sum(int(self._of_class[class_id].misses[found].sum()) for class_id, found in rows.items())

    def count(self, class_id: int, row: int, number: int) -> None:
        """So many more pods of a class are on a row."""
        self.missing += number * self._of_class[class_id].misses.item(row)

    def linear(self, movables: Movables) -> LinearForm:
        """A price for each pod on each row."""
        concerned = [pod for pod in movables.pods if pod.pod_class.id in self._of_class]
        prices = {
            (pod.uid, row): self._of_class[pod.pod_class.id].misses.item(row) / MICRO
            for pod, row in movables.pairs(concerned)
        }
        return LinearForm(self.missing / MICRO - sum(prices[pod.uid, pod.row] for pod in concerned), prices)

    def leaving(self, class_id: int) -> Int64s:
        """`[rows]`: what a pod of the class misses there."""
        return self._of_class[class_id].misses

    def arriving(self, class_id: int) -> Int64s:
        """`[rows]`: what a pod of the class would miss there."""
        return self._of_class[class_id].misses

    def complaint(self, class_id: int, row: int) -> str:
        """What is wrong with the node."""
        demand = self._of_class[class_id]
        if not demand.misses[row]:
            return ""
        return next((text for where, text in demand.complaints if where[row]), "")


def demand_of(misses: Int64s, possible: Bools, complaints: Sequence[tuple[Bools, str]]) -> NodeDemand | None:
    """What pods miss on each row, less what they would miss on the best of the ``possible`` ones.

    None where no node gives more than another, or none is possible.
    """
    if not possible.any():
        return None
    beyond = np.maximum(misses - misses[possible].min(), 0)
    return NodeDemand(beyond, tuple(complaints)) if beyond.any() else None
