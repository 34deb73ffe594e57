"""Numbers for what comes and goes: values of labels, sets of taints, names of resources.

Who has something is counted, and the number of what nobody has any more is given to something else.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np

from podium.cluster.arrays import Int32s

Value = TypeVar("Value", bound=Hashable)


class Codes(Generic[Value]):
    """Codes of the values that some rows have: ``values[code]``. A code that no row has any more is given again.

    Code 0 stands for ``blank``, which is also what ``values`` holds for codes that are free.
    """

    def __init__(self, blank: Value) -> None:
        self.values: list[Value] = [blank]
        self._code_of: dict[Value, int] = {}
        self._users: list[int] = [1]
        self._free: list[int] = []

    def find(self, value: Value) -> int:
        """The code of ``value``, 0 where no row has it."""
        return self._code_of.get(value, 0)

    def take(self, value: Value) -> int:
        """The code of ``value``, for one row more."""
        if value == self.values[0]:
            return 0
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = self._free.pop() if self._free else len(self.values)
            if code == len(self.values):
                self.values.append(value)
                self._users.append(0)
            else:
                self.values[code] = value
        self._users[code] += 1
        return code

    def give_back(self, code: int) -> None:
        """A row has the value of ``code`` no more."""
        if code == 0:
            return
        self._users[code] -= 1
        if not self._users[code]:
            del self._code_of[self.values[code]]
            self.values[code] = self.values[0]
            self._free.append(code)


class LabelColumn(Codes[str | None]):
    """The values of one label key: ``codes[row]`` is 0 where the node lacks the label.

    ``asked``: somebody has asked for it lately. ``pins``: how many keep something by its codes.
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(None)
        self.codes: Int32s = np.zeros(capacity, dtype=np.int32)
        self.asked = True
        self.pins = 0

    def write(self, row: int, value: str | None) -> None:
        """The node in ``row`` has this value."""
        before = int(self.codes[row])
        self.codes[row] = self.take(value)
        self.give_back(before)


class ResourceNames:
    """The places of resources in arrays: ``names[place]``, "" where none is. The ``first`` ones are there for good."""

    def __init__(self, first: Iterable[str]) -> None:
        self.names = list(first)
        self.index_of = {name: index for index, name in enumerate(self.names)}
        self._users = [1] * len(self.names)
        self._free: list[int] = []

    def take(self, name: str) -> int:
        """The place of a resource, for one user more."""
        index = self.index_of.get(name)
        if index is None:
            index = self.index_of[name] = self._free.pop() if self._free else len(self.names)
            if index == len(self.names):
                self.names.append(name)
                self._users.append(0)
            else:
                self.names[index] = name
        self._users[index] += 1
        return index

    def give_back(self, index: int) -> None:
        """There is one user fewer."""
        self._users[index] -= 1
        if not self._users[index]:
            del self.index_of[self.names[index]]
            self.names[index] = ""
            self._free.append(index)
