"""A protobuf encoder that writes objects as Go clients do: the reference for decoding."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

from podium.api.schemas.schema import Leaf, ListOf, MapOf, Object, Type, own_fields, type_in
from podium.api.times import parse_time
from tests.store.objects import Raw


def encoded(raw: Raw) -> bytes:
    """Return the body that a client sends for the object."""
    message = type_in(raw["apiVersion"], raw["kind"])
    assert message is not None
    types = field(1, 2, raw["apiVersion"].encode()) + field(2, 2, raw["kind"].encode())
    return (
        b"k8s\x00" + field(1, 2, types) + field(2, 2, written(raw, message.name)) + field(3, 2, b"") + field(4, 2, b"")
    )


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def field(number: int, wire_type: int, value: Any) -> bytes:
    tag = varint(number << 3 | wire_type)
    if wire_type == 0:
        return tag + varint(value)
    data = bytes(value)
    return tag + data if wire_type == 1 else tag + varint(len(data)) + data


def written(raw: Raw, type_: str) -> bytes:
    """Return the fields of a message, in the order of their numbers; those of inlined types are in the same object."""
    parts = []
    numbered = [(one.number, name, one) for name, one in own_fields(type_) if one.number is not None]
    for number, name, one in sorted(numbered, key=lambda entry: entry[0]):
        if not name:
            assert isinstance(one.type, Object)
            parts.append(field(number, 2, written(raw, one.type.name)))
        elif name in raw:
            parts.append(_field(number, one.type, raw[name]))
    return b"".join(parts)


def _field(number: int, type_: Type, value: Any) -> bytes:
    match type_:
        case ListOf(item_type):
            return b"".join(field(number, *_single(item_type, item)) for item in value)
        case MapOf(inner):
            entries = ((key, _single(inner, entry)) for key, entry in value.items())
            return b"".join(field(number, 2, field(1, 2, key.encode()) + field(2, *entry)) for key, entry in entries)
    return field(number, *_single(type_, value))


def _single(type_: Type, value: Any) -> tuple[int, Any]:
    match type_:
        case Object(name):
            return 2, written(value, name)
        case Leaf(name):
            return _leaf(name, value)
    return 2, b"".join(field(1, 2, one.encode()) for one in value)


def _leaf(type_: str, value: Any) -> tuple[int, Any]:
    if type_ in ("int", "long", "bool"):
        return 0, int(value)
    if type_ == "float":
        return 1, struct.pack("<d", value)
    return 2, _bytes(type_, value)


def _bytes(type_: str, value: Any) -> bytes:
    match type_:
        case "bytes":
            return bytes(base64.b64decode(value))
        case "quantity":
            return field(1, 2, bytes(value, "utf-8"))
        case "intOrString":
            whole = isinstance(value, int)
            parts = (field(1, 0, 0 if whole else 1), field(2, 0, value if whole else 0))
            return b"".join((*parts, field(3, 2, b"" if whole else value.encode())))
        case "time" | "microtime":
            seconds, nanos = divmod(parse_time(value), 10**9)
            return field(1, 0, seconds) + field(2, 0, nanos)
        case "any":
            return field(1, 2, json.dumps(value).encode())
    return bytes(value, "utf-8")
