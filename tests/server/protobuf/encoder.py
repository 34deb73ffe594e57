"""Writes objects in protobuf as Go's clients do: what decoding is held against."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

from podium.api.times import parse_time
from podium.server.protobuf.messages import Field, Message, fields_of, message_of
from tests.store.objects import Raw


def encoded(raw: Raw) -> bytes:
    """The body that a client sends for the object."""
    message = message_of(raw["apiVersion"], raw["kind"])
    assert message is not None
    types = field(1, 2, raw["apiVersion"].encode()) + field(2, 2, raw["kind"].encode())
    return b"k8s\x00" + field(1, 2, types) + field(2, 2, written(raw, message)) + field(3, 2, b"") + field(4, 2, b"")


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


def written(raw: Raw, message: Message) -> bytes:
    """The fields of a message, in the order of their numbers; a field without a name takes its own from the same."""
    parts = []
    for number, one in sorted(fields_of(message).items()):
        if not one.name:
            assert isinstance(one.type, Message)
            parts.append(field(number, 2, written(raw, one.type)))
        elif one.name in raw:
            parts.append(_field(number, one, raw[one.name]))
    return b"".join(parts)


def _field(number: int, one: Field, value: Any) -> bytes:
    if one.is_list:
        return b"".join(field(number, *_single(one.type, item)) for item in value)
    if one.is_map:
        return b"".join(
            field(number, 2, field(1, 2, key.encode()) + field(2, *_single(one.type, entry)))
            for key, entry in value.items()
        )
    return field(number, *_single(one.type, value))


def _single(type_: str | Message, value: Any) -> tuple[int, Any]:
    if isinstance(type_, Message):
        return 2, written(value, type_)
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
        case "share":
            whole = isinstance(value, int)
            parts = (field(1, 0, 0 if whole else 1), field(2, 0, value if whole else 0))
            return b"".join((*parts, field(3, 2, b"" if whole else value.encode())))
        case "time" | "microtime":
            seconds, nanos = divmod(parse_time(value), 10**9)
            return field(1, 0, seconds) + field(2, 0, nanos)
        case "json":
            return field(1, 2, json.dumps(value).encode())
        case "values":
            return b"".join(field(1, 2, one.encode()) for one in value)
    return bytes(value, "utf-8")
