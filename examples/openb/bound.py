"""An upper bound of the GPUs that any scheduler can allocate: a linear program over the contents of single GPUs.

The program relaxes the problem in two ways: tasks are divisible, and the CPUs of all nodes with one GPU model count as
one pool. What a GPU holds is exact: each GPU has one of the patterns, such as `470 + 470`, that fit its 1,000
thousandths. Patterns are generated as needed, each by a knapsack problem. No placement, with or without moves, exceeds
the optimum.

It needs HiGHS: `pip install 'podium[exact]'`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from examples.openb.gpu_sharing import WHOLE, Floats
from examples.openb.workload import Node, Task

from podium.plugin import Int64s, PodiumError


@dataclass(frozen=True, slots=True)
class Bound:
    """The optimum, in thousandths of GPUs, and what free parts of a GPU are worth at the optimum.

    ``worth[model]`` is `[1001]`: by the free thousandths of a GPU, the value of the tasks that would best fill them,
    beyond what these tasks could have elsewhere.
    """

    total_milli: float
    worth: dict[str, Floats]


class _Demand(NamedTuple):
    gpu_milli: int
    models: tuple[str, ...]
    cpu_milli: float


def upper_bound(nodes: Sequence[Node], tasks: Iterable[Task], scale: float = 1.0) -> Bound:
    """Return the most that any placement of ``tasks``, each ``scale`` times, allocates on the nodes."""
    gpus, cpus = Counter[str](), Counter[str]()
    for node in nodes:
        gpus[node.model] += node.gpus
        cpus[node.model] += node.cpu_milli
    wanted = Counter[_Demand]()
    for task in tasks:
        if task.gpus:
            wanted[_Demand(task.gpu_milli, task.models, task.cpu_milli / task.gpus)] += task.gpus
    if not wanted:
        return Bound(0.0, {model: np.zeros(WHOLE + 1) for model in gpus})
    program = _Program(sorted(model for model in gpus if gpus[model]), sorted(wanted))
    program.limit(gpus, cpus, [wanted[demand] * scale for demand in program.demands])
    while True:
        total, worth, prices = program.solve()
        if not program.add_patterns(prices):
            return Bound(total, worth)


class _Program:
    """The linear program: rows for GPUs and CPUs of each model, for sizes on each model, and for demands.

    Columns are the thousandths-sized slots that a demand gets on a model, and the patterns of a model's GPUs.
    """

    def __init__(self, models: Sequence[str], demands: Sequence[_Demand]) -> None:
        try:
            import highspy  # noqa: PLC0415
        except ImportError:
            raise PodiumError("the upper bound needs HiGHS: pip install 'podium[exact]'") from None
        self.models, self.demands = models, demands
        self.sizes = sorted({demand.gpu_milli for demand in demands})
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._highs.silent()
        self._infinity = highspy.kHighsInf
        self._patterns: set[tuple[str, tuple[int, ...]]] = set()

    def limit(self, gpus: Counter[str], cpus: Counter[str], wanted: Sequence[float]) -> None:
        """Add the rows with their limits, the columns of slots, and a first pattern for each size and model."""
        limits = [float(gpus[model]) for model in self.models] + [float(cpus[model]) for model in self.models]
        limits += [0.0] * (len(self.models) * len(self.sizes)) + list(wanted)
        none = np.empty(0, dtype=np.int32)
        for limit in limits:
            self._highs.addRow(-self._infinity, limit, 0, none, np.empty(0))
        for number, model in enumerate(self.models):
            for index, demand in enumerate(self.demands):
                if not demand.models or model in demand.models:
                    size = self.sizes.index(demand.gpu_milli)
                    rows = (len(self.models) + number, self._size_row(number, size), len(limits) - len(wanted) + index)
                    self._column(-float(demand.gpu_milli), rows, (demand.cpu_milli, 1.0, 1.0))
            for size in range(len(self.sizes)):
                self._add(number, tuple(int(size == other) for other in range(len(self.sizes))))

    def solve(self) -> tuple[float, dict[str, Floats], Floats]:
        """Return the optimum, the worth of free parts by model, and the prices of sizes, `[models, sizes]`."""
        self._highs.run()
        duals = -np.array(self._highs.getSolution().row_dual)
        count = len(self.models)
        prices = duals[2 * count : 2 * count + count * len(self.sizes)].reshape(count, -1)
        self._gpu_prices = duals[:count]
        self._fillings = [_fillings(self.sizes, row) for row in prices]
        worth = {model: self._fillings[number][0] for number, model in enumerate(self.models)}
        return -self._highs.getObjectiveValue(), worth, prices

    def add_patterns(self, prices: Floats) -> bool:
        """Add the pattern of each model that is worth more than a GPU costs; return whether there was one."""
        found = False
        for number in range(len(self.models)):
            worth, last = self._fillings[number]
            if worth[WHOLE] > self._gpu_prices[number] + 1e-6:
                found |= self._add(number, _pattern(self.sizes, last))
        return found

    def _size_row(self, model: int, size: int) -> int:
        return 2 * len(self.models) + model * len(self.sizes) + size

    def _add(self, model: int, pattern: tuple[int, ...]) -> bool:
        key = self.models[model], pattern
        if key in self._patterns:
            return False
        self._patterns.add(key)
        used = [(size, number) for size, number in enumerate(pattern) if number]
        rows = (model, *(self._size_row(model, size) for size, _ in used))
        self._column(0.0, rows, (1.0, *(-float(number) for _, number in used)))
        return True

    def _column(self, cost: float, rows: Sequence[int], values: Sequence[float]) -> None:
        self._highs.addCol(cost, 0.0, self._infinity, len(rows), np.array(rows, dtype=np.int32), np.array(values))


def _fillings(sizes: Sequence[int], prices: Floats) -> tuple[Floats, Int64s]:
    """Solve the knapsack problem for each capacity.

    Return `[1001]` the best value, and `[1001]` the index of a size in it, -1 for none.
    """
    best = np.zeros(WHOLE + 1)
    last = np.full(WHOLE + 1, -1, dtype=np.int64)
    worthwhile = [(index, size, float(prices[index])) for index, size in enumerate(sizes) if prices[index] > 1e-9]
    for capacity in range(1, WHOLE + 1):
        best[capacity] = best[capacity - 1]
        for index, size, price in worthwhile:
            if size <= capacity and best[capacity - size] + price > best[capacity] + 1e-9:
                best[capacity], last[capacity] = best[capacity - size] + price, index
    return best, last


def _pattern(sizes: Sequence[int], last: Int64s) -> tuple[int, ...]:
    """Return how often each size is in the best filling of a whole GPU."""
    pattern, capacity = [0] * len(sizes), WHOLE
    while capacity > 0:
        index = int(last[capacity])
        if index < 0:
            capacity -= 1
        else:
            pattern[index] += 1
            capacity -= sizes[index]
    return tuple(pattern)
