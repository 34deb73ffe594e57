"""Something that some pods ask of their places, and how much of it they miss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from podium.cluster.arrays import Int64s
from podium.framework.rescheduling.linear import LinearForm, Movables

MICRO = 10**6
"""What one pod misses is counted in whole millionths, so that sums do not hang on their order."""


class Demand(Protocol):
    """Something that pods prefer or require, counted over all of them.

    ``missing`` is what all miss of it together, in millionths of a pod in quite the wrong place.
    """

    @property
    def missing(self) -> int: ...

    @property
    def concerns(self) -> Iterable[int]:
        """The classes (ids) whose pods have it, or are whom it is about."""
        ...

    def fill(self, rows: Mapping[int, Int64s]) -> None:
        """The rows of the pods of each class (id) that it concerns, where nobody was counted before."""
        ...

    def count(self, class_id: int, row: int, number: int) -> None:
        """So many more pods of a class that it concerns are on a row."""
        ...

    def leaving(self, class_id: int) -> Int64s:
        """`[rows]`: by how much less would be missed if a pod of the class that is on the row were gone."""
        ...

    def arriving(self, class_id: int) -> Int64s:
        """`[rows]`: by how much more would be missed if another pod of the class came to the row."""
        ...

    def complaint(self, class_id: int, row: int) -> str:
        """What a pod of the class misses on a row, or makes others miss, in words; "" where it is nothing."""
        ...


@runtime_checkable
class LinearDemand(Protocol):
    """A demand that can say what is missed of it, in pods, in the form of `podium.framework.rescheduling.linear`."""

    def linear(self, movables: Movables) -> LinearForm:
        """What would be missed, wherever these pods are; where they are as it counts them by now."""
        ...
