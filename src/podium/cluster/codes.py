"""Numbers for what comes and goes: values of labels, sets of taints, names of resources.

Who has something is counted, and the number of what nobody has any more is given to something else.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np

from podium.cluster.arrays import Int32s

Value = TypeVar("Value", bound=Hashable)


class Numbers(Generic[Value]):
    """The numbers of values that somebody has: ``values[number]``, and ``number_of`` the other way round.

    The number of what nobody has any more stands for ``blank``, until another value gets it. The ``first`` values have
    theirs for good.
    """

    def __init__(self, blank: Value, first: Iterable[Value]) -> None:
        self._blank = blank
        self.values = list(first)
        self.number_of = {value: number for number, value in enumerate(self.values)}
        self._users = [1] * len(self.values)
        self._free: list[int] = []

    def take(self, value: Value) -> int:
        """The number of ``value``, for one user more."""
        number = self.number_of.get(value)
        if number is None:
            number = self.number_of[value] = self._free.pop() if self._free else len(self.values)
            if number == len(self.values):
                self.values.append(value)
                self._users.append(0)
            else:
                self.values[number] = value
        self._users[number] += 1
        return number

    def give_back(self, number: int) -> None:
        """There is one user fewer."""
        self._users[number] -= 1
        if not self._users[number]:
            del self.number_of[self.values[number]]
            self.values[number] = self._blank
            self._free.append(number)


class Codes(Numbers[Value]):
    """Codes of the values that some rows have. All rows have code 0, that of ``blank``, until they take another."""

    def __init__(self, blank: Value) -> None:
        super().__init__(blank, (blank,))

    def find(self, value: Value) -> int:
        """The code of ``value``, 0 where no row has it."""
        return self.number_of.get(value, 0)

    def take(self, value: Value) -> int:
        """The code of ``value``, for one row more."""
        return 0 if value == self._blank else super().take(value)

    def give_back(self, code: int) -> None:
        """A row has the value of ``code`` no more."""
        if code:
            super().give_back(code)


class LabelColumn(Codes[str | None]):
    """The values of one label key: ``codes[row]`` is 0 where the node lacks the label.

    ``asked``: somebody has asked for it lately. ``pins``: how many keep something by its codes.
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(None)
        self.codes: Int32s = np.zeros(capacity, dtype=np.int32)
        self.asked = True
        self.pins = 0
        self._labelled = 0

    @property
    def domains(self) -> int:
        """How many values the nodes have."""
        return len(self.number_of) - 1

    @property
    def is_single(self) -> bool:
        """Whether each value is that of one node alone, as that of a hostname."""
        return self._labelled == self.domains

    def write(self, row: int, value: str | None) -> None:
        """The node in ``row`` has this value."""
        before = int(self.codes[row])
        self.codes[row] = self.take(value)
        self.give_back(before)
        self._labelled += (value is not None) - (before != 0)
