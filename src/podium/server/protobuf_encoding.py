"""Encoding of objects, lists and watch events as protobuf for Kubernetes clients, the inverse of `protobuf`.

A body is an envelope after four magic bytes (apimachinery, pkg/runtime/types.proto Unknown). Fields without a number,
which only Podium has, are left out. A watch sends frames: a length and a WatchEvent (pkg/runtime/serializer/protobuf).
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from podium.api.meta import Raw
from podium.api.schemas.schema import Leaf, ListOf, MapOf, Object, Type
from podium.api.times import exact_time
from podium.server.protobuf import BYTES, FIXED_64, MAGIC, SCHEMA, VARINT, message_fields, message_of
from podium.store.stored import encoded as as_json

Writer = Callable[[Any], bytes]

_METADATA, _ITEMS = 1, 2
_SECOND = 10**9


def encode(raw: Raw) -> bytes:
    """Return the body with an object of a kind that has a protobuf form (`message_of`)."""
    api_version, kind = str(raw["apiVersion"]), str(raw["kind"])
    return _enveloped(api_version, kind, encode_message(message_of(api_version, kind), raw))


def encode_item(raw: Raw) -> bytes:
    """Return an object as an item of a list, for `encode_list`."""
    return bytes_field(_ITEMS, encode_message(message_of(str(raw["apiVersion"]), str(raw["kind"])), raw))


def encode_list(head: Raw, items: Iterable[bytes]) -> bytes:
    """Return the body with a list, from its fields other than the items and from the results of `encode_item`."""
    metadata = bytes_field(_METADATA, encode_message("ListMeta", head["metadata"]))
    return _enveloped(str(head["apiVersion"]), str(head["kind"]), b"".join((metadata, *items)))


def encode_event(type_: str, body: bytes) -> bytes:
    """Return the frame of a watch event about an encoded object."""
    event = bytes_field(1, type_.encode()) + bytes_field(2, bytes_field(1, body))
    return struct.pack(">I", len(event)) + event


def _enveloped(api_version: str, kind: str, content: bytes) -> bytes:
    types = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    # An encoding and a content type of "" follow, as in Go.
    return b"".join((MAGIC, bytes_field(1, types), bytes_field(2, content), b"\x1a\x00\x22\x00"))


def encode_message(name: str, raw: Raw) -> bytes:
    """Return the message of an object of a type."""
    writers, inlined = _writers(name)
    parts = [writers[field](value) for field, value in raw.items() if value is not None and field in writers]
    for number, inner in inlined:
        content = encode_message(inner, raw)
        if content:
            parts.append(bytes_field(number, content))
    return b"".join(parts)


@cache
def _writers(name: str) -> tuple[Mapping[str, Writer], list[tuple[int, str]]]:
    """Return the writers of a type's fields by name, and the number and type of each inlined one."""
    writers: dict[str, Writer] = {}
    inlined: list[tuple[int, str]] = []
    for number, (field_name, field) in message_fields(name).items():
        if field_name:
            writers[field_name] = _writer(number, field.type)
        elif isinstance(field.type, Object):
            inlined.append((number, field.type.name))
    return writers, inlined


def _writer(number: int, type_: Type) -> Writer:
    """Return the function that writes a field with its tag."""
    match type_:
        case ListOf(item):
            write = _writer(number, item)
            return lambda value: b"".join([write(one) for one in value])
        case MapOf(value_type):
            # A list in a map is a message of its own.
            inner = _writer(1, value_type) if isinstance(value_type, ListOf) else None
            key, plain, map_tag = _writer(1, Leaf("str")), _writer(2, value_type), _tag(number, BYTES)
            entry = plain if inner is None else lambda value: bytes_field(2, inner(value))
            return lambda value: b"".join(
                [map_tag + _sized(key(name) + entry(one)) for name, one in value.items() if one is not None]
            )
        case Object(name):
            special = _UNIONS.get(name)
            tag = _tag(number, BYTES)
            if special is not None:
                return lambda value: tag + _sized(special(value))
            return lambda value: tag + _sized(encode_message(name, value))
    wire_type, write = _LEAVES[type_.type]
    tag = _tag(number, wire_type)
    if wire_type == BYTES:
        return lambda value: tag + _sized(write(value))
    return lambda value: tag + write(value)


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def bytes_field(number: int, content: bytes) -> bytes:
    """Return a field with a text, bytes, or a message."""
    return _tag(number, BYTES) + _sized(content)


def _sized(content: bytes) -> bytes:
    length = len(content)
    return (_SHORT[length] if length < len(_SHORT) else _varint(length)) + content


def _varint(value: int) -> bytes:
    """Return an integer of at most 64 bits; a negative one as its two's complement."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


_SHORT = [bytes((length,)) for length in range(128)]


def _time(text: Any) -> bytes:
    seconds, nanos = divmod(exact_time(str(text)), _SECOND)
    return _tag(1, VARINT) + _varint(seconds) + _tag(2, VARINT) + _varint(nanos)


def _int_or_string(value: Any) -> bytes:
    if isinstance(value, int):
        return _tag(1, VARINT) + b"\x00" + _tag(2, VARINT) + _varint(value) + bytes_field(3, b"")
    return _tag(1, VARINT) + b"\x01" + _tag(2, VARINT) + b"\x00" + bytes_field(3, str(value).encode())


def _schema_or_bool(value: Any) -> bytes:
    if isinstance(value, bool):
        return _tag(1, VARINT) + _varint(value)
    return _tag(1, VARINT) + b"\x01" + bytes_field(2, encode_message(SCHEMA, value))


def _schema_or_list(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join([bytes_field(2, encode_message(SCHEMA, one)) for one in value])
    return bytes_field(1, encode_message(SCHEMA, value))


_UNIONS: Mapping[str, Writer] = {"JSONSchemaOrBool": _schema_or_bool, "JSONSchemaOrList": _schema_or_list}
_LEAVES: Mapping[str, tuple[int, Writer]] = {
    "any": (BYTES, lambda value: bytes_field(1, as_json(value))),
    "bool": (VARINT, lambda value: b"\x01" if value else b"\x00"),
    "bytes": (BYTES, base64.b64decode),
    "float": (FIXED_64, lambda value: struct.pack("<d", value)),
    "int": (VARINT, _varint),
    "intOrString": (BYTES, _int_or_string),
    "long": (VARINT, _varint),
    "microtime": (BYTES, _time),
    "quantity": (BYTES, lambda value: bytes_field(1, str(value).encode())),
    "str": (BYTES, lambda value: value.encode()),
    "time": (BYTES, _time),
}
