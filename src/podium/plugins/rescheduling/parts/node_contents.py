"""What a node costs by the pods on it, in the form of a table: for objectives that are a sum over nodes.

Source of the form: `podium.framework.rescheduling.linear`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.linear import Contents, Movables

CostOf = Callable[[int, Int64s], float]
"""What the node in a row costs, with these amounts in all."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """What counts of pods: ``of_pod`` says how much of each thing a pod adds to its node, by its uid.

    ``in_all`` is ``[things, rows]`` with all pods where they are, and ``most`` what a node can hold of it.
    """

    of_pod: Mapping[str, tuple[int, ...]]
    in_all: Int64s
    most: Int64s


def contents_of(movables: Movables, amounts: Amounts, cost: CostOf) -> Iterator[Contents]:
    """A table for each row where pods that may move are, or may be. Pods that add the same are of one kind."""
    on_row: dict[int, list[PodRecord]] = {}
    for pod, row in movables.pairs():
        on_row.setdefault(row, []).append(pod)
    for row, pods in sorted(on_row.items()):
        kinds: dict[str, Hashable] = {pod.uid: amounts.of_pod[pod.uid] for pod in pods}
        order = sorted(set(map(amounts.of_pod.__getitem__, kinds)))
        yield _table(row, kinds, order, [pod for pod in pods if pod.row == row], amounts, cost)


def _table(
    row: int,
    kinds: Mapping[str, Hashable],
    order: Sequence[tuple[int, ...]],
    present: Sequence[PodRecord],
    amounts: Amounts,
    cost: CostOf,
) -> Contents:
    each = np.array(order, dtype=np.int64).T
    now = amounts.in_all[:, row]
    held = now - sum((np.array(amounts.of_pod[pod.uid], dtype=np.int64) for pod in present), np.zeros_like(now))
    # What is there already fits, however much it is.
    most = np.maximum(amounts.most[:, row], now)

    def added(counts: tuple[int, ...]) -> Int64s:
        total: Int64s = held + each @ np.array(counts, dtype=np.int64)
        return total

    return Contents(
        row,
        kinds,
        order,
        lambda counts: cost(row, added(counts)),
        lambda counts: bool((added(counts) <= most).all()),
    )
