"""A column of a table, as the buffers that Arrow has for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["int64", "float64", "bool", "string"]
Value = int | float | bool | str | None
Bytes = npt.NDArray[np.uint8]

FORMATS: dict[Kind, str] = {"int64": "l", "float64": "g", "bool": "b", "string": "U"}
"""What Arrow's C data interface calls them; text has offsets of 64 bits."""

_DTYPES: dict[Kind, type] = {"int64": np.int64, "float64": np.float64, "bool": np.bool_}


@dataclass(frozen=True)
class Column:
    """Values of one kind, None where there is none."""

    name: str
    kind: Kind
    values: Sequence[Value]

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def null_count(self) -> int:
        """How many values are None."""
        return sum(value is None for value in self.values)

    @cached_property
    def validity(self) -> Bytes | None:
        """A bit for each value, the lowest first, which is 1 where there is one; None where there are all."""
        if not self.null_count:
            return None
        return np.packbits([value is not None for value in self.values], bitorder="little")

    @cached_property
    def plain(self) -> npt.NDArray[np.generic]:
        """``[n]`` the numbers or truths, 0 where there is none; of text its bytes, one behind the other."""
        if self.kind == "string":
            return np.frombuffer(b"".join(self._encoded), dtype=np.uint8)
        return np.array([0 if value is None else value for value in self.values], dtype=_DTYPES[self.kind])

    @cached_property
    def bits(self) -> Bytes:
        """The truths, a bit each."""
        return np.packbits(self.plain.astype(np.bool_), bitorder="little")

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """``[n + 1]`` where each text begins, and where the last one ends."""
        found = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in self._encoded], out=found[1:])
        return found

    @cached_property
    def _encoded(self) -> list[bytes]:
        # Names of objects may hold halves of surrogate pairs, which no other program takes.
        return [str("" if value is None else value).encode("utf-8", "replace") for value in self.values]


def column_of(name: str, values: Sequence[Value], kind: Kind | None = None) -> Column:
    """The column of these values, of that `kind` where they are of it.

    Otherwise it is of text where one is text, else of the widest kind of number; of text without any.
    """
    found = _kind_of(values)
    if kind is not None and (found is None or kind in _WIDER[found]):
        found = kind
    if found in (None, "string"):
        return Column(name, "string", [value if value is None else str(value) for value in values])
    return Column(name, found, values)


# By the kind of values, the kinds of columns that hold them as they are.
_WIDER: dict[Kind, tuple[Kind, ...]] = {
    "bool": ("bool", "int64", "float64"),
    "int64": ("int64", "float64"),
    "float64": ("float64",),
    "string": ("string",),
}


def _kind_of(values: Sequence[Value]) -> Kind | None:
    """The kind of values, None where there are none."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return None
    if kinds == {bool}:
        return "bool"
    if kinds <= {int, bool} and all(-(2**63) <= int(value or 0) < 2**63 for value in values):
        return "int64"
    return "float64" if kinds <= {int, float, bool} else "string"
