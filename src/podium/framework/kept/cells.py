"""Groups of rows for which plugins of scope CLUSTER answer alike, so that they are asked about groups and not rows.

What InterPodAffinity says of a node hangs on the pods in the node's domain. So all nodes of a zone get one answer, and
so do all that hold as many of those pods, where the domain is the node itself. The zone, or that number, is a column;
rows that agree in all columns are a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.cluster.view import View


class Cells(Protocol):
    """How a plugin tells rows apart, for the pods of one class. It must not lead to the class.

    For as long as it is current, a row's columns change only when the row does, or a node.
    """

    def is_current(self, pod: PodRecord) -> bool:
        """Whether rows are still told apart so, for ``pod``."""
        ...

    def columns(self, view: View) -> Sequence[Int64s]:
        """What tells the rows of a view apart: for each column ``[n]``."""
        ...

    def of_row(self, row: int) -> tuple[int, ...]:
        """The entries of one row."""
        ...


class CellFilter(Cells, Protocol):
    """The cells of a filter."""

    def fits(self, pod: PodRecord, rows: Sequence[int]) -> Sequence[bool]:
        """Whether the pod fits, for some rows, each of another cell."""
        ...


class CellScore(Cells, Protocol):
    """The cells of a score."""

    def score(self, pod: PodRecord, rows: Sequence[int], sizes: Sequence[int]) -> Sequence[int]:
        """The normalised scores of some rows, each of another cell; those are all feasible cells, with their sizes."""
        ...


class OneCell:
    """All nodes are one cell: the score has nothing to say about a pod, for as long as a condition holds of it."""

    def __init__(self, is_current: Callable[[PodRecord], bool]) -> None:
        self.is_current = is_current

    @classmethod
    def of(cls, pod: PodRecord, condition: Callable[[PodRecord], bool]) -> OneCell | None:
        """One cell, if the condition holds of ``pod``."""
        return cls(condition) if condition(pod) else None

    def columns(self, view: View) -> Sequence[Int64s]:
        """None."""
        return ()

    def of_row(self, row: int) -> tuple[int, ...]:
        """Nothing."""
        return ()

    def score(self, pod: PodRecord, rows: Sequence[int], sizes: Sequence[int]) -> Sequence[int]:
        """Nothing for all."""
        return [0] * len(rows)
