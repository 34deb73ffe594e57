"""The dataframe interchange protocol.

Source: https://data-apis.org/dataframe-protocol/latest/API.html.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from podium.app.frames.column import FORMATS, Column

_NATIVE = "="


class DtypeKind(enum.IntEnum):
    """The protocol's kinds of values that occur here."""

    INT = 0
    UINT = 1
    FLOAT = 2
    BOOL = 20
    STRING = 21


class NullKind(enum.IntEnum):
    """How the protocol says that a value is not there; those that occur here."""

    NON_NULLABLE = 0
    USE_BITMASK = 3


Dtype = tuple[DtypeKind, int, str, str]
_INT64: Dtype = (DtypeKind.INT, 64, "l", _NATIVE)
_BYTE: Dtype = (DtypeKind.UINT, 8, "C", _NATIVE)
_BIT: Dtype = (DtypeKind.BOOL, 1, "b", _NATIVE)
_DTYPES: dict[str, Dtype] = {
    "int64": _INT64,
    "float64": (DtypeKind.FLOAT, 64, "g", _NATIVE),
    "bool": (DtypeKind.BOOL, 8, "b", _NATIVE),
    "string": (DtypeKind.STRING, 8, FORMATS["string"], _NATIVE),
}


class InterchangeBuffer:
    """A piece of memory, which lives as long as this object does."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array = np.ascontiguousarray(array)

    @property
    def bufsize(self) -> int:
        """Its size in bytes."""
        return int(self._array.nbytes)

    @property
    def ptr(self) -> int:
        """Where it begins."""
        return int(self._array.ctypes.data)

    def __dlpack__(self) -> Any:
        """As DLPack has it."""
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, None]:
        """The processor's own memory."""
        return (1, None)


class InterchangeColumn:
    """A column in one chunk."""

    offset = 0
    metadata: ClassVar[dict[str, Any]] = {}

    def __init__(self, column: Column) -> None:
        self._column = column

    def size(self) -> int:
        """How many values it has."""
        return len(self._column)

    @property
    def dtype(self) -> Dtype:
        """Kind, bits, format and byte order of the values."""
        return _DTYPES[self._column.kind]

    @property
    def describe_categorical(self) -> dict[str, Any]:
        """There are none."""
        raise TypeError(f"column {self._column.name} is not categorical")

    @property
    def describe_null(self) -> tuple[NullKind, int | None]:
        """A bit of 0 in the mask says that a value is not there."""
        return (NullKind.USE_BITMASK, 0) if self._column.null_count else (NullKind.NON_NULLABLE, None)

    @property
    def null_count(self) -> int:
        """How many values are not there."""
        return self._column.null_count

    def num_chunks(self) -> int:
        """One."""
        return 1

    def get_chunks(self, n_chunks: int | None = None) -> Iterable[InterchangeColumn]:
        """The column itself."""
        return [self]

    def get_buffers(self) -> dict[str, tuple[InterchangeBuffer, Dtype] | None]:
        """The memory of the values, of what says which are there, and where texts begin."""
        column = self._column
        is_text = column.kind == "string"
        validity = column.validity
        return {
            "data": (InterchangeBuffer(column.plain), _BYTE if is_text else self.dtype),
            "validity": None if validity is None else (InterchangeBuffer(validity), _BIT),
            "offsets": (InterchangeBuffer(column.offsets), _INT64) if is_text else None,
        }


class InterchangeFrame:
    """A table in one chunk."""

    version = 0
    metadata: ClassVar[dict[str, Any]] = {}

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = {column.name: column for column in columns}

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> InterchangeFrame:
        """The table itself."""
        return self

    def num_columns(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    def num_rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self._columns.values()), ()))

    def num_chunks(self) -> int:
        """One."""
        return 1

    def column_names(self) -> list[str]:
        """The names of the columns in their order."""
        return list(self._columns)

    def get_column(self, i: int) -> InterchangeColumn:
        """The column in a place."""
        return InterchangeColumn(list(self._columns.values())[i])

    def get_column_by_name(self, name: str) -> InterchangeColumn:
        """The column of a name."""
        return InterchangeColumn(self._columns[name])

    def get_columns(self) -> list[InterchangeColumn]:
        """All columns."""
        return [InterchangeColumn(column) for column in self._columns.values()]

    def select_columns(self, indices: Sequence[int]) -> InterchangeFrame:
        """Some columns, by place."""
        columns = list(self._columns.values())
        return InterchangeFrame([columns[index] for index in indices])

    def select_columns_by_name(self, names: Sequence[str]) -> InterchangeFrame:
        """Some columns, by name."""
        return InterchangeFrame([self._columns[name] for name in names])

    def get_chunks(self, n_chunks: int | None = None) -> Iterable[InterchangeFrame]:
        """The table itself."""
        return [self]
