"""Pods of one owner that are to lie on as many nodes as may be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.framework.rescheduling.linear import Cost, Curve, LinearForm, Movables, Pair
from podium.plugins.rescheduling.demands.demand import MICRO


class OwnerDemand:
    """An owner's pods, none of which should be where another node could have it.

    ``feasible`` says for each of their classes (ids) which nodes may take pods of it (`[rows]`). A node's fair part is
    the number of pods for each node that may take any of those that are placed, rounded up; each pod beyond it is one
    in the wrong place. Pods elsewhere than on ``rows`` (`[rows]`) do not count.

    Source: kubernetes-sigs/descheduler, pkg/framework/plugins/removeduplicates (upperAvg, getTargetNodes).
    """

    def __init__(self, owner: str, feasible: Mapping[int, Bools], rows: Bools) -> None:
        self._owner = owner
        self.concerns: Iterable[int] = sorted(feasible)
        self._rows, self._rows_of_class = rows, feasible
        # By row and by class, without those that have none.
        self._pods: dict[int, int] = {}
        self._of_class: dict[int, int] = {}
        # How many nodes may take those that are placed; None until it is asked for.
        self._feasible: int | None = None
        self._number = 0
        self._missing: int | None = None

    @property
    def missing(self) -> int:
        if self._missing is None:
            part = self._part()
            self._missing = MICRO * sum([pods - part for pods in self._pods.values() if pods > part])
        return self._missing

    def fill(self, rows: Mapping[int, Int64s]) -> None:
        """The rows of the pods of each class."""
        on_row: Counter[int] = Counter()
        for class_id, found in rows.items():
            counted = found[self._rows[found]].tolist()
            if counted:
                self._of_class[class_id] = len(counted)
                on_row.update(counted)
        self._pods, self._number = dict(on_row), on_row.total()
        self._feasible = self._missing = None

    def count(self, class_id: int, row: int, number: int) -> None:
        """So many more of the pods are on a row."""
        if not self._rows[row]:
            return
        self._number += number
        _add(self._pods, row, number)
        if _add(self._of_class, class_id, number):
            self._feasible = None
        self._missing = None

    def linear(self, movables: Movables) -> LinearForm:
        """For each node how many are beyond its part; nothing where pods could come to count that do not."""
        pods = [pod for pod in movables.pods if pod.pod_class.id in self._rows_of_class]
        if any(not self._rows[row] for _, row in movables.pairs(pods)):
            return LinearForm(left_out=("owners with pods on nodes that take in nobody",))
        part, own = self._part(), Counter(pod.row for pod in pods)
        curve = Curve(lambda number: max(number - part, 0.0), lambda number: float(number > part), (part, part + 1.0))
        added: defaultdict[int, dict[Pair, float]] = defaultdict(dict)
        for pod, row in movables.pairs(pods):
            added[row][pod.uid, row] = 1.0
        rows = sorted({*added, *self._pods})
        costs = [Cost(curve, added[row], float(self._pods.get(row, 0) - own[row])) for row in rows]
        return LinearForm(costs=costs)

    def leaving(self, class_id: int) -> Int64s:
        """`[rows]`: whether a node has more than its part."""
        return self._at_least(self._part() + 1)

    def arriving(self, class_id: int) -> Int64s:
        """`[rows]`: whether a node would have more than its part, which one more pod may make larger."""
        return self._at_least(self._part(class_id))

    def complaint(self, class_id: int, row: int) -> str:
        """How many there are, and how many nodes could have them."""
        pods = self._pods.get(row, 0)
        if pods <= self._part():
            return ""
        return f"{pods} pods of {self._owner} are on it, and {self._nodes(self._of_class)} nodes could have one"

    def _part(self, joining: int | None = None) -> int:
        """A node's part, as things are, or if a pod of a class joined."""
        number = self._number + (joining is not None)
        if joining is not None and joining not in self._of_class:
            nodes = self._nodes((*self._of_class, joining))
        else:
            if self._feasible is None:
                self._feasible = self._nodes(self._of_class)
            nodes = self._feasible
        # Where no node may take any, none has too many.
        return -(-number // nodes) if nodes else number

    def _nodes(self, classes: Iterable[int]) -> int:
        """How many nodes may take pods of some classes."""
        rows = {id(found): found for found in map(self._rows_of_class.__getitem__, classes)}
        return int(np.logical_or.reduce(list(rows.values())).sum()) if rows else 0

    def _at_least(self, number: int) -> Int64s:
        found: Int64s = np.zeros(len(self._rows), dtype=np.int64)
        for row, pods in self._pods.items():
            if pods >= number:
                found[row] = MICRO
        return found


def _add(numbers: dict[int, int], key: int, number: int) -> bool:
    """Count so many more under a key; returns whether it comes or goes by that."""
    before = numbers.pop(key, 0)
    if before + number:
        numbers[key] = before + number
    return not before or not before + number
