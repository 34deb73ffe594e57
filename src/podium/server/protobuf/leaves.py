"""Single values in protobuf: numbers, text, and the types that Kubernetes writes in a form of their own."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from typing import Any

from podium.api.errors import InputError
from podium.api.input.exact_json import UncertainError
from podium.api.input.exact_json import decode as decode_json
from podium.api.times import MAX_TIME_NS, format_time
from podium.server.protobuf.wire import BYTES, FIXED_64, VARINT, Value, fields, signed

_SECOND = 10**9


def leaf(type_: str, wire_type: int, value: Value) -> Any:
    """The value in JSON of a leaf; None for one that says nothing, such as a time that there is not.

    Raises ValueError for what is no such value.
    """
    wanted, read = _LEAVES[type_]
    if wire_type != wanted:
        raise ValueError(f"protobuf: a value of type {type_} has the wire type {wire_type}")
    return read(value)


def zero(type_: str) -> Any:
    """What a leaf is where nothing is written."""
    wanted, read = _LEAVES[type_]
    return read({VARINT: 0, BYTES: b"", FIXED_64: bytes(8)}[wanted])


def wire_type_of(type_: str) -> int:
    """How values of a type are written."""
    return _LEAVES[type_][0]


def _text(value: Any) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        raise ValueError("protobuf: a text is not UTF-8") from None


def _quantity(value: Any) -> str:
    for number, wire_type, part in fields(value):
        if number == 1 and wire_type == BYTES:
            return _text(part)
    return "0"


def _share(value: Any) -> int | str:
    found: dict[int, Value] = {number: part for number, _, part in fields(value)}
    kind, whole, text = found.get(1, 0), found.get(2, 0), found.get(3, b"")
    if not (isinstance(kind, int) and isinstance(whole, int) and isinstance(text, bytes)):
        raise ValueError("protobuf: an IntOrString has values of other types")
    return _text(text) if kind else signed(whole, 32)


def _nanoseconds(value: Any) -> int | None:
    """The time of a Timestamp; None for an empty one, which stands for no time."""
    if not value:
        return None
    found = {number: part for number, wire_type, part in fields(value) if wire_type == VARINT}
    seconds, nanos = found.get(1, 0), found.get(2, 0)
    if not (isinstance(seconds, int) and isinstance(nanos, int)):
        raise AssertionError("a varint is a number")
    time = signed(seconds, 64) * _SECOND + signed(nanos, 32)
    if not 0 <= time <= MAX_TIME_NS:
        raise ValueError("protobuf: a time is out of range; times are from 1970 to 2262")
    return time


def _time(value: Any) -> str | None:
    time = _nanoseconds(value)
    return None if time is None else format_time(time)


def _micro_time(value: Any) -> str | None:
    """Microseconds are always written (meta/v1 MicroTime, RFC3339Micro)."""
    time = _nanoseconds(value)
    return None if time is None else f"{format_time(time)[:-1]}.{time % _SECOND // 1_000:06}Z"


def _json(value: Any) -> Any:
    """The JSON in a RawExtension, or in FieldsV1."""
    text = b""
    for number, wire_type, part in fields(value):
        if number == 1 and wire_type == BYTES and isinstance(part, bytes):
            text = part
    if not text.strip():
        return None
    try:
        return decode_json(text)
    except (InputError, UncertainError, UnicodeDecodeError) as error:
        raise ValueError(f"protobuf: the JSON in it cannot be read: {error}") from None


def _values(value: Any) -> list[str]:
    return [_text(part) for number, wire_type, part in fields(value) if number == 1 and wire_type == BYTES]


_LEAVES: Mapping[str, tuple[int, Callable[[Any], Any]]] = {
    "bool": (VARINT, bool),
    "bytes": (BYTES, lambda value: base64.b64encode(value).decode()),
    "float": (FIXED_64, lambda value: struct.unpack("<d", value)[0]),
    "int": (VARINT, lambda value: signed(value, 32)),
    "json": (BYTES, _json),
    "long": (VARINT, lambda value: signed(value, 64)),
    "microtime": (BYTES, _micro_time),
    "quantity": (BYTES, _quantity),
    "share": (BYTES, _share),
    "str": (BYTES, _text),
    "time": (BYTES, _time),
    "values": (BYTES, _values),
}
