"""Sets of victims, side by side, of which one is to be chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from podium.cluster.arrays import Int64s, pieces
from podium.decide.preempting.costs.facts import Facts, PodNumbers


@dataclass(frozen=True, slots=True)
class VictimSets:
    """``slots[starts[i]:starts[i + 1]]`` are the victims of set ``i``, at least one; they may lie on several nodes.

    ``violations`` is ``[sets]``: how many disruptions of each would be more than budgets allow.
    """

    facts: Facts
    starts: Int64s
    slots: Int64s
    violations: Int64s

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def owners(self) -> Int64s:
        """``[victims]``: the set of each."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def of_pods(self, numbers: PodNumbers) -> Int64s:
        """``[victims]``: a number for each."""
        return self.facts.of(numbers, self.slots)

    def sums(self, values: Int64s) -> Int64s:
        """``[sets]``: the sums of numbers of ``[victims]``."""
        found: Int64s = np.add.reduceat(values, self.starts[:-1]) if len(self) else np.empty(0, dtype=np.int64)
        return found

    def largest(self, values: Int64s) -> Int64s:
        """``[sets]``: the largest of the numbers of ``[victims]``."""
        found: Int64s = np.maximum.reduceat(values, self.starts[:-1]) if len(self) else np.empty(0, dtype=np.int64)
        return found

    def smallest(self, values: Int64s) -> Int64s:
        """``[sets]``: the smallest of the numbers of ``[victims]``."""
        return -self.largest(-values)

    def only(self, sets: Int64s) -> VictimSets:
        """Some of the sets, in the order given."""
        starts, places = pieces(self.starts, sets)
        return replace(self, starts=starts, slots=self.slots[places], violations=self.violations[sets])
