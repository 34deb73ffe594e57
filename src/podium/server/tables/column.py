"""Columns of tables, and what makes the rows of a kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from podium.api.meta import Raw

Cells = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column (meta/v1 TableColumnDefinition); those of a priority above 0 are shown with `-o wide` alone."""

    name: str
    description: str
    type: str = "string"
    format: str = ""
    priority: int = 0

    def to_dict(self) -> Raw:
        """The definition as the API gives it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def no_conditions(_: Raw) -> list[Raw]:
    """The conditions of rows of most kinds."""
    return []


@dataclass(frozen=True, slots=True)
class Printer:
    """How objects of a kind are shown: the columns, and the cells of an object at a time, as many.

    `conditions` are those of the row: what is completed, kubectl can leave out.
    """

    columns: tuple[Column, ...]
    cells: Callable[[Raw, int], Cells]
    conditions: Callable[[Raw], list[Raw]] = no_conditions


NAME = Column("Name", "The name of the object, which no other of its kind has in its namespace.", format="name")
AGE = Column("Age", "How long ago the object was created.")
CONTAINERS = Column("Containers", "The names of the containers in the template.", priority=1)
IMAGES = Column("Images", "The images of the containers in the template.", priority=1)
SELECTOR = Column("Selector", "Which pods belong to the object.", priority=1)
