"""A mixed-integer linear program, and who solves it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True)
class Program:
    """Minimise ``offset`` and the costs of variables, which are at least 0, under rows that are at most something.

    Rows are kept sparse, one after the other: row k has the entries from ``starts[k]`` on.
    """

    offset: float = 0.0
    costs: list[float] = field(default_factory=list)
    uppers: list[float] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    row_lowers: list[float] = field(default_factory=list)
    row_uppers: list[float] = field(default_factory=list)

    def choice(self, cost: float = 0.0) -> int:
        """A variable that is 0 or 1; returns its number."""
        return self.count(1, cost)

    def count(self, upper: int, cost: float = 0.0) -> int:
        """A variable that is a whole number up to ``upper``; returns its number."""
        self.integers.append(len(self.costs))
        return self.amount(cost, float(upper))

    def amount(self, cost: float, upper: float = math.inf) -> int:
        """A variable that is any number from 0 on."""
        self.costs.append(cost)
        self.uppers.append(upper)
        return len(self.costs) - 1

    def row(self, entries: Mapping[int, float], upper: float, lower: float = -math.inf) -> None:
        """What the entries add up to lies within the bounds."""
        self.starts.append(len(self.columns))
        self.columns.extend(entries)
        self.values.extend(entries.values())
        self.row_lowers.append(lower)
        self.row_uppers.append(upper)


@dataclass(frozen=True, slots=True)
class Solution:
    """The best values that were found, what they cost, and the cost below which nothing can be.

    ``is_proven``: these are the same, to the precision of the solver.
    """

    values: tuple[float, ...]
    cost: float
    bound: float
    is_proven: bool


class Solver(Protocol):
    """Solves a program that has a solution, the same for the same program."""

    def solve(self, program: Program) -> Solution:
        """The best solution, or the best that was found within the solver's limits."""
        ...
