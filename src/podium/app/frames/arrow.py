"""Arrow's C stream interface, by its PyCapsule protocol, in plain Python.

Source: https://arrow.apache.org/docs/format/CDataInterface.html, CStreamInterface.html and
CDataInterface/PyCapsuleInterface.html.

Whoever takes such a structure copies it and calls its `release` when it needs it no more. What stands behind a
structure is kept until then, by a number that stands in the structure, wherever that is by then.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_void_p
from itertools import count
from typing import Any

import numpy as np

from podium.app.frames.column import FORMATS, Column

_STREAM, _SCHEMA = b"arrow_array_stream", b"arrow_schema"
_STRUCT = "+s"
_NULLABLE = 2


class _Schema(ctypes.Structure):
    """struct ArrowSchema."""


class _Array(ctypes.Structure):
    """struct ArrowArray."""


class _Stream(ctypes.Structure):
    """struct ArrowArrayStream."""


_RELEASE = ctypes.CFUNCTYPE(None, c_void_p)
_GET = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
_LAST_ERROR = ctypes.CFUNCTYPE(c_char_p, c_void_p)

_Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_char_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(_Schema))),
    ("dictionary", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
]
_Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(_Array))),
    ("dictionary", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
]
_Stream._fields_ = [
    ("get_schema", c_void_p),
    ("get_next", c_void_p),
    ("get_last_error", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
]

# What stands behind the structures that somebody has, by their number.
_kept: dict[int, Any] = {}
_numbers = count(1)


class _Source:
    """What a stream has yet to give."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns
        self.is_given = False
        # What goes wrong goes wrong here, where it can be raised.
        for column in columns:
            _buffers_of(column)


def stream_capsule(columns: Sequence[Column]) -> Any:
    """The columns as a stream of one batch, in a capsule called `arrow_array_stream`."""
    stream = _Stream()
    stream.get_schema = ctypes.cast(_get_schema, c_void_p).value
    stream.get_next = ctypes.cast(_get_next, c_void_p).value
    stream.get_last_error = ctypes.cast(_get_last_error, c_void_p).value
    stream.release = ctypes.cast(_release_stream, c_void_p).value
    stream.private_data = _keep(_Source(columns))
    return _capsule(stream, _STREAM)


def schema_capsule(columns: Sequence[Column]) -> Any:
    """The names and kinds of the columns, in a capsule called `arrow_schema`."""
    schema = _Schema()
    _fill_schema(schema, columns)
    return _capsule(schema, _SCHEMA)


def _keep(what: Any) -> int:
    number = next(_numbers)
    _kept[number] = what
    return number


def _fill_schema(schema: _Schema, columns: Sequence[Column]) -> None:
    """Write the schema of a table, with one child for each column."""
    children = [_Schema() for _ in columns]
    for child, column in zip(children, columns, strict=True):
        _fill_one(child, FORMATS[column.kind], column.name, [])
        child.flags = _NULLABLE
    _fill_one(schema, _STRUCT, "", children)


def _fill_one(schema: _Schema, format_: str, name: str, children: list[_Schema]) -> None:
    pointers = (POINTER(_Schema) * len(children))(*map(ctypes.pointer, children))
    # A name ends there with its first NUL.
    texts = (format_.encode(), name.replace("\0", "\\0").encode("utf-8", "replace"))
    schema.format, schema.name = texts
    schema.metadata, schema.flags, schema.dictionary = None, 0, None
    schema.n_children = len(children)
    schema.children = ctypes.cast(pointers, POINTER(POINTER(_Schema)))
    schema.release = ctypes.cast(_release_schema, c_void_p).value
    schema.private_data = _keep((texts, children, pointers))


def _fill_table(array: _Array, columns: Sequence[Column]) -> None:
    """Write a batch with one child for each column."""
    children = [_Array() for _ in columns]
    for child, column in zip(children, columns, strict=True):
        _fill_array(child, len(column), column.null_count, _buffers_of(column), [])
    _fill_array(array, len(columns[0]) if columns else 0, 0, [None], children)


def _fill_array(
    array: _Array,
    length: int,
    null_count: int,
    buffers: Sequence[np.ndarray[Any, Any] | None],
    children: list[_Array],
) -> None:
    contiguous = [None if buffer is None else np.ascontiguousarray(buffer) for buffer in buffers]
    addresses = (c_void_p * len(contiguous))(*(None if buffer is None else buffer.ctypes.data for buffer in contiguous))
    pointers = (POINTER(_Array) * len(children))(*map(ctypes.pointer, children))
    array.length, array.null_count, array.offset = length, null_count, 0
    array.n_buffers, array.n_children = len(contiguous), len(children)
    array.buffers = ctypes.cast(addresses, POINTER(c_void_p))
    array.children = ctypes.cast(pointers, POINTER(POINTER(_Array)))
    array.dictionary = None
    array.release = ctypes.cast(_release_array, c_void_p).value
    array.private_data = _keep((contiguous, addresses, children, pointers))


def _buffers_of(column: Column) -> list[np.ndarray[Any, Any] | None]:
    if column.kind == "string":
        return [column.validity, column.offsets, column.plain]
    return [column.validity, column.bits if column.kind == "bool" else column.plain]


def _released(structure: _Schema | _Array, release: Any) -> None:
    """Let go of a structure and of its children, where nobody has taken them."""
    for index in range(structure.n_children):
        child = structure.children[index]
        if child.contents.release:
            release(ctypes.addressof(child.contents))
    number = structure.private_data
    structure.release = None
    _kept.pop(number, None)


def _on_release_schema(address: int) -> None:
    _released(_Schema.from_address(address), _release_schema)


def _on_release_array(address: int) -> None:
    _released(_Array.from_address(address), _release_array)


def _on_release_stream(address: int) -> None:
    stream = _Stream.from_address(address)
    number = stream.private_data
    stream.release = None
    _kept.pop(number, None)


def _on_get_schema(stream_address: int, address: int) -> int:
    source: _Source = _kept[_Stream.from_address(stream_address).private_data]
    _fill_schema(_Schema.from_address(address), source.columns)
    return 0


def _on_get_next(stream_address: int, address: int) -> int:
    source: _Source = _kept[_Stream.from_address(stream_address).private_data]
    array = _Array.from_address(address)
    if source.is_given:
        # A structure that is released says that there is no more.
        array.release = None
        return 0
    source.is_given = True
    _fill_table(array, source.columns)
    return 0


def _on_get_last_error(_: int) -> None:
    return None


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (c_void_p, c_char_p, c_void_p)
_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.restype = c_void_p
_pointer_in.argtypes = (c_void_p, c_char_p)
# The structures in capsules, by their address.
_in_capsules: dict[int, _Schema | _Stream] = {}


def _capsule(structure: _Schema | _Stream, name: bytes) -> Any:
    address = ctypes.addressof(structure)
    _in_capsules[address] = structure
    return _new_capsule(address, name, ctypes.cast(_end[name], c_void_p))


# A capsule that ends is no object that Python could be given: it comes as an address.
def _on_end_stream(capsule: int) -> None:
    address = _pointer_in(capsule, _STREAM)
    if _Stream.from_address(address).release:
        _release_stream(address)
    _in_capsules.pop(address, None)


def _on_end_schema(capsule: int) -> None:
    address = _pointer_in(capsule, _SCHEMA)
    if _Schema.from_address(address).release:
        _release_schema(address)
    _in_capsules.pop(address, None)


_release_schema, _release_array, _release_stream = map(
    _RELEASE, (_on_release_schema, _on_release_array, _on_release_stream)
)
_get_schema, _get_next = map(_GET, (_on_get_schema, _on_get_next))
_get_last_error = _LAST_ERROR(_on_get_last_error)
_end = {_STREAM: _RELEASE(_on_end_stream), _SCHEMA: _RELEASE(_on_end_schema)}
# They may be called when this module has been taken apart: they are never freed.
for _called in (
    _release_schema,
    _release_array,
    _release_stream,
    _get_schema,
    _get_next,
    _get_last_error,
    *_end.values(),
):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_called))
