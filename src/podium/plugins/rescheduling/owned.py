"""The demands of owners that their pods run on different nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pod_classes import Owner, PodClass
from podium.framework.rescheduling.policy import Cost, Curve, LinearForm, Movables, Pair, Picture
from podium.plugins.node_affinity import required_nodes
from podium.plugins.rescheduling.demands import MICRO, Demand
from podium.plugins.rescheduling.node_use import accepting

ONE_A_NODE = ("DaemonSet", "Node")
"""Kinds of owners whose pods are bound to their nodes and cannot be spread."""


class Owned:
    """Creates the demands of all owners except those of some kinds."""

    def __init__(self, excluded_kinds: tuple[str, ...]) -> None:
        self._excluded = frozenset((*excluded_kinds, *ONE_A_NODE))

    def __call__(self, picture: Picture, classes: Mapping[int, PodClass]) -> Iterator[Demand]:
        owners: dict[tuple[str, Owner], list[PodClass]] = {}
        for pod_class in classes.values():
            if pod_class.owner is not None and pod_class.owner[1] not in self._excluded:
                owners.setdefault((pod_class.namespace, pod_class.owner), []).append(pod_class)
        rows = picture.targets[: picture.cluster.nodes.count]
        # Classes with equal requirements share an array.
        known: dict[Hashable, Bools] = {}
        for (_, (_, kind, name)), owned in owners.items():
            feasible = {}
            for pod_class in owned:
                key = (required_nodes(pod_class), pod_class.spec.tolerations)
                if key not in known:
                    known[key] = accepting(picture, pod_class)
                feasible[pod_class.id] = known[key]
            yield OwnerDemand(f"{kind} {name}", feasible, rows)


class OwnerDemand(Demand):
    """An owner's pods, none of which should be where another node could take it.

    ``feasible`` says for each of their classes (ids) which nodes may take its pods (`[rows]`). A node's fair share is
    the number of placed pods per node that may take any of them, rounded up; each pod beyond it is badly placed. Pods
    outside ``rows`` (`[rows]`) do not count.

    Source: kubernetes-sigs/descheduler, pkg/framework/plugins/removeduplicates (upperAvg, getTargetNodes).
    """

    def __init__(self, owner: str, feasible: Mapping[int, Bools], rows: Bools) -> None:
        super().__init__(feasible)
        self._owner = owner
        self._rows, self._rows_of_class = rows, feasible
        # By row and by class, without empty entries.
        self._pods: dict[int, int] = {}
        self._of_class: dict[int, int] = {}
        # The number of nodes that may take the placed pods; None until it is computed.
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
        on_row: Counter[int] = Counter()
        for class_id, found in rows.items():
            counted = found[self._rows[found]].tolist()
            if counted:
                self._of_class[class_id] = len(counted)
                on_row.update(counted)
        self._pods, self._number = dict(on_row), on_row.total()
        self._feasible = self._missing = None

    def count(self, class_id: int, row: int, number: int) -> None:
        if not self._rows[row]:
            return
        self._number += number
        _add(self._pods, row, number)
        if _add(self._of_class, class_id, number):
            self._feasible = None
        self._missing = None

    def linear(self, movables: Movables) -> LinearForm:
        """Return for each node the pods beyond its share; nothing if pods that do not count now could come to count."""
        pods = [pod for pod in movables.pods if pod.pod_class.id in self._rows_of_class]
        if any(not self._rows[row] for _, row in movables.pairs(pods)):
            return LinearForm(left_out=("owners with pods on nodes that accept no pods",))
        part, own = self._part(), Counter(pod.row for pod in pods)
        curve = Curve(lambda number: max(number - part, 0.0), lambda number: float(number > part), (part, part + 1.0))
        added: defaultdict[int, dict[Pair, float]] = defaultdict(dict)
        for pod, row in movables.pairs(pods):
            added[row][pod.uid, row] = 1.0
        rows = sorted({*added, *self._pods})
        costs = [Cost(curve, added[row], float(self._pods.get(row, 0) - own[row])) for row in rows]
        return LinearForm(costs=costs)

    def leaving(self, class_id: int) -> Int64s:
        return self._at_least(self._part() + 1)

    def arriving(self, class_id: int) -> Int64s:
        """Return `[rows]` whether a node would have more than its share, which one more pod may raise."""
        return self._at_least(self._part(class_id))

    def complaint(self, class_id: int, row: int) -> str:
        pods = self._pods.get(row, 0)
        if pods <= self._part():
            return ""
        return f"{pods} pods of {self._owner} are on it, and {self._nodes(self._of_class)} nodes could have one"

    def _part(self, joining: int | None = None) -> int:
        """Return a node's share, in the present state or if a pod of a class joined."""
        number = self._number + (joining is not None)
        if joining is not None and joining not in self._of_class:
            nodes = self._nodes((*self._of_class, joining))
        else:
            if self._feasible is None:
                self._feasible = self._nodes(self._of_class)
            nodes = self._feasible
        # If no node may take any, no node has too many.
        return -(-number // nodes) if nodes else number

    def _nodes(self, classes: Iterable[int]) -> int:
        """Return how many nodes may take pods of some classes."""
        rows = {id(found): found for found in map(self._rows_of_class.__getitem__, classes)}
        return int(np.logical_or.reduce(list(rows.values())).sum()) if rows else 0

    def _at_least(self, number: int) -> Int64s:
        found: Int64s = np.zeros(len(self._rows), dtype=np.int64)
        for row, pods in self._pods.items():
            if pods >= number:
                found[row] = MICRO
        return found


def _add(numbers: dict[int, int], key: int, number: int) -> bool:
    """Add ``number`` under a key; return whether the key appears or disappears."""
    before = numbers.pop(key, 0)
    if before + number:
        numbers[key] = before + number
    return not before or not before + number
