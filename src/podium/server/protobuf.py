"""Protobuf: the objects of Kubernetes clients, decoded into the JSON wire form and encoded from it.

The body is an envelope (apimachinery, pkg/runtime/types.proto Unknown) after four magic bytes. Fields that a Go client
would omit from JSON are omitted, and so are those without a number, which only Podium has. Unknown fields are skipped,
as is usual in protobuf. Only the schemas of CustomResourceDefinitions contain themselves; how deep they may be nested
is limited. A watch sends frames: a length and a WatchEvent (pkg/runtime/serializer/protobuf).
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

from msgspec.structs import replace

from podium.api.errors import InputError, shown
from podium.api.input.json import UncertainError
from podium.api.input.json import decode as decode_json
from podium.api.meta import Raw
from podium.api.schemas.schema import META_VERSION, Field, Leaf, ListOf, MapOf, Object, Type, own_fields, type_in
from podium.api.times import EARLIEST_NS, MAX_TIME_NS, SECOND, exact_time, format_micro_time, format_time
from podium.store.stored import encoded as as_json

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
"""The wire types."""

_FIXED = {FIXED_64: 8, FIXED_32: 4}
_LONGEST_VARINT = 10

Value = int | bytes
"""A varint as an unsigned 64-bit integer, or the bytes of any other value."""

MAGIC = b"k8s\x00"
"""The first bytes of every body."""

_NAMES = {"PartialObjectMetadata": "PartialObject"}
_IN_EVERY_GROUP = ("DeleteOptions", "Status", *_NAMES)
_API_VERSION = _KEY = 1
_KIND = _VALUE = 2
SCHEMA = "JSONSchemaProps"
"""The type of a definition's schema."""

# Fields that are any JSON elsewhere, and messages of these types in protobuf.
_MESSAGES = {
    ("CustomResourceSubresources", "status"): Object("CustomResourceSubresourceStatus"),
    ("CustomResourceValidation", "openAPIV3Schema"): Object(SCHEMA),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Writer = Callable[[Any], bytes]

_METADATA, _ITEMS = 1, 2
_SHORT = [bytes((length,)) for length in range(128)]


def fields(data: bytes) -> Iterator[tuple[int, int, Value]]:
    """Yield each field of a message: its number, wire type and value. Raises ValueError for a malformed message."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _read_varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if not number:
            raise ValueError("protobuf: a field has the number 0")
        if wire_type == VARINT:
            value, position = _read_varint(data, position)
            yield number, wire_type, value
            continue
        if wire_type == BYTES:
            length, position = _read_varint(data, position)
        elif wire_type in _FIXED:
            length = _FIXED[wire_type]
        else:
            raise ValueError(f"protobuf: field {number} has the wire type {wire_type}, which is not read")
        if length > end - position:
            raise ValueError(f"protobuf: field {number} is cut off")
        yield number, wire_type, data[position : position + length]
        position += length


def signed(value: int, bits: int) -> int:
    """Return a varint as a signed integer of so many bits; excess bits are truncated, as usual in protobuf."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the varint at a position, and the position after it."""
    value = shift = 0
    for index in range(position, min(position + _LONGEST_VARINT, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, index + 1
        shift += 7
    raise ValueError("protobuf: a number is cut off or too long")


def decode(body: bytes) -> Raw:
    """Return the object in a body. Raises ValueError for one that is malformed or of an unknown kind."""
    if not body.startswith(MAGIC):
        raise ValueError("protobuf: the body does not begin as Kubernetes' objects do")
    parts = _bytes(body[len(MAGIC) :])
    types = _bytes(parts.get(1, b""))
    api_version, kind, encoding = (
        _leaf("str", BYTES, part) for part in (types.get(_API_VERSION, b""), types.get(_KIND, b""), parts.get(3, b""))
    )
    if encoding:
        raise ValueError(f"protobuf: the object is encoded as {shown(encoding)}, which is not read")
    name = message_of(api_version, kind)
    if not name:
        raise ValueError(f"protobuf: objects of kind {shown(kind)} of {shown(api_version)} are read as JSON only")
    try:
        return {"apiVersion": api_version, "kind": kind, **_read(parts.get(2, b""), name)}
    except RecursionError:
        raise ValueError("protobuf: the object is nested too deep") from None


def message_of(api_version: str, kind: str) -> str:
    """Return the type of a kind's objects if it has a protobuf form; "" otherwise, as for custom kinds."""
    type_ = type_in(META_VERSION if kind in _IN_EVERY_GROUP else api_version, _NAMES.get(kind, kind))
    has_form = type_ is not None and all(
        field.number is not None or own in ("apiVersion", "kind") for own, field in own_fields(type_.name)
    )
    return type_.name if type_ is not None and has_form else ""


def _bytes(data: bytes) -> dict[int, bytes]:
    """Return the texts and messages in a message by number."""
    return {number: value for number, type_, value in fields(data) if type_ == BYTES and isinstance(value, bytes)}


def _integers(data: bytes) -> dict[int, int]:
    """Return the varints in a message by number."""
    return {number: value for number, _, value in fields(data) if isinstance(value, int)}


def _read(data: bytes, name: str) -> Raw:
    """Return the message of a type as an object."""
    known = message_fields(name)
    result: Raw = {}
    for number, wire_type, value in fields(data):
        if number not in known:
            continue
        field_name, field = known[number]
        match field.type:
            case ListOf(item):
                result.setdefault(field_name, []).extend(_items(item, wire_type, value))
            case MapOf(inner):
                key, entry = _entry(inner, _checked(wire_type, value))
                result.setdefault(field_name, {})[key] = entry
            case Object(inner_name) if inner_name in _UNIONS:
                result[field_name] = _UNIONS[inner_name][0](_checked(wire_type, value))
            case Object(inner_name):
                message = _read(_checked(wire_type, value), inner_name)
                # A repeated message is merged, and one without a name is inlined.
                if not field_name:
                    result.update(message)
                elif message or field.keeps_zero:
                    result[field_name] = {**result.get(field_name, {}), **message}
            case Leaf(leaf_type):
                _set(result, field_name, field, _leaf(leaf_type, wire_type, value))
    return result


@cache
def message_fields(name: str) -> Mapping[int, tuple[str, Field]]:
    """Return the fields of a message with their names, by number; "" for inlined ones."""
    found: dict[int, tuple[str, Field]] = {}
    for own, field in own_fields(name):
        if field.number is not None:
            found[field.number] = own, replace(field, type=_MESSAGES.get((name, own), field.type))
    return found


def _read_schema_or_bool(data: bytes) -> Raw | bool:
    inner = _bytes(data).get(2)
    return bool(_integers(data).get(1)) if inner is None else _read(inner, SCHEMA)


def _read_schema_or_list(data: bytes) -> Raw | list[Raw]:
    found = [(number, value) for number, _, value in fields(data) if isinstance(value, bytes)]
    single = next((value for number, value in found if number == 1), None)
    return [_read(value, SCHEMA) for _, value in found] if single is None else _read(single, SCHEMA)


def _set(result: Raw, name: str, field: Field, value: Any) -> None:
    if value is None or (not field.keeps_zero and value in (0, "", [])):
        result.pop(name, None)
    else:
        result[name] = value


def _items(type_: Type, wire_type: int, value: Value) -> list[Any]:
    """Return the item of a list, or the items of a packed list."""
    if isinstance(type_, Leaf) and wire_type == BYTES and _LEAVES[type_.type][0] == VARINT:
        packed, position, items = _checked(wire_type, value), 0, []
        while position < len(packed):
            number, position = _read_varint(packed, position)
            items.append(_leaf(type_.type, VARINT, number))
        return items
    return [_single(type_, wire_type, value)]


def _entry(type_: Type, data: bytes) -> tuple[str, Any]:
    """Return the key and the value of a map entry."""
    key = ""
    entry = zero(type_.type) if isinstance(type_, Leaf) else [] if isinstance(type_, ListOf) else {}
    for number, wire_type, value in fields(data):
        if number == _KEY:
            key = _leaf("str", wire_type, value)
        elif number == _VALUE:
            entry = _single(type_, wire_type, value)
    return key, entry


def _single(type_: Type, wire_type: int, value: Value) -> Any:
    match type_:
        case Leaf(name):
            return _leaf(name, wire_type, value)
        case Object(name):
            return _read(_checked(wire_type, value), name)
    # A list in a map is a message of its own; all of Kubernetes' are of text.
    parts = fields(_checked(wire_type, value))
    return [_text(part) for number, inner_wire_type, part in parts if number == 1 and inner_wire_type == BYTES]


def _checked(wire_type: int, value: Value) -> bytes:
    if wire_type != BYTES or not isinstance(value, bytes):
        raise ValueError(f"protobuf: a message has the wire type {wire_type}")
    return value


def _leaf(type_: str, wire_type: int, value: Value) -> Any:
    """Return the JSON value of a leaf; None for an empty one, such as an absent time.

    Raises ValueError for an invalid value.
    """
    wanted, read, _ = _LEAVES[type_]
    if wire_type != wanted:
        raise ValueError(f"protobuf: a value of type {type_} has the wire type {wire_type}")
    return read(value)


def zero(type_: str) -> Any:
    """Return the value of a leaf that is not encoded."""
    wanted, read, _ = _LEAVES[type_]
    return read({VARINT: 0, BYTES: b"", FIXED_64: bytes(8)}[wanted])


def _text(value: Any) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        raise ValueError("protobuf: a text is not UTF-8") from None


def _read_float(value: Any) -> float:
    number: float = struct.unpack("<d", value)[0]
    if not math.isfinite(number):
        raise ValueError("protobuf: a number is not finite")
    return number


def _read_int_or_string(value: Any) -> int | str:
    found: dict[int, Value] = {number: part for number, _, part in fields(value)}
    kind, whole, text = found.get(1, 0), found.get(2, 0), found.get(3, b"")
    if not (isinstance(kind, int) and isinstance(whole, int) and isinstance(text, bytes)):
        raise ValueError("protobuf: an IntOrString has values of other types")
    return _text(text) if kind else signed(whole, 32)


def _read_time(value: Any, *, is_micro: bool = False) -> str | None:
    """Return the time of a Timestamp; None for an empty one, which means no time."""
    if not value:
        return None
    found = _integers(value)
    time = signed(found.get(1, 0), 64) * SECOND + signed(found.get(2, 0), 32)
    if not EARLIEST_NS <= time <= MAX_TIME_NS:
        raise ValueError("protobuf: a time is out of range; times are up to 2262")
    if time >= 0:
        return format_micro_time(time) if is_micro else format_time(time)
    early = _EPOCH + timedelta(microseconds=time // 1_000)
    return f"{early:%Y-%m-%dT%H:%M:%S.%f}Z" if is_micro else f"{early:%Y-%m-%dT%H:%M:%S}Z"


def _read_json(value: Any) -> Any:
    """Return the JSON in a RawExtension, or in FieldsV1."""
    text = _bytes(value).get(1, b"")
    if not text.strip():
        return None
    try:
        return decode_json(text)
    except (InputError, UncertainError, UnicodeDecodeError) as error:
        raise ValueError(f"protobuf: the JSON in it cannot be read: {error}") from None


def encode(raw: Raw) -> bytes:
    """Return the body with an object of a kind that has a protobuf form (`message_of`)."""
    api_version, kind = str(raw["apiVersion"]), str(raw["kind"])
    return _envelope(api_version, kind, encode_message(message_of(api_version, kind), raw))


def encode_item(raw: Raw) -> bytes:
    """Return an object as an item of a list, for `encode_list`."""
    return bytes_field(_ITEMS, encode_message(message_of(str(raw["apiVersion"]), str(raw["kind"])), raw))


def encode_list(head: Raw, items: Iterable[bytes]) -> bytes:
    """Return the body with a list, from its fields other than the items and from the results of `encode_item`."""
    metadata = bytes_field(_METADATA, encode_message("ListMeta", head["metadata"]))
    return _envelope(str(head["apiVersion"]), str(head["kind"]), b"".join((metadata, *items)))


def encode_event(type_: str, body: bytes) -> bytes:
    """Return the frame of a watch event about an encoded object."""
    event = bytes_field(1, type_.encode()) + bytes_field(2, bytes_field(1, body))
    return struct.pack(">I", len(event)) + event


def _envelope(api_version: str, kind: str, content: bytes) -> bytes:
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
            tag = _tag(number, BYTES)
            if name in _UNIONS:
                special = _UNIONS[name][1]
                return lambda value: tag + _sized(special(value))
            return lambda value: tag + _sized(encode_message(name, value))
    wire_type, _, write = _LEAVES[type_.type]
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


def _time(text: Any) -> bytes:
    seconds, nanos = divmod(exact_time(str(text)), SECOND)
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


_UNIONS: Mapping[str, tuple[Callable[[bytes], Any], Writer]] = {
    "JSONSchemaOrBool": (_read_schema_or_bool, _schema_or_bool),
    "JSONSchemaOrList": (_read_schema_or_list, _schema_or_list),
}
# By leaf type: its wire type, and the functions that read and write it.
_LEAVES: Mapping[str, tuple[int, Callable[[Any], Any], Writer]] = {
    "any": (BYTES, _read_json, lambda value: bytes_field(1, as_json(value))),
    "bool": (VARINT, bool, lambda value: b"\x01" if value else b"\x00"),
    "bytes": (BYTES, lambda value: base64.b64encode(value).decode(), base64.b64decode),
    "float": (FIXED_64, _read_float, lambda value: struct.pack("<d", value)),
    "int": (VARINT, lambda value: signed(value, 32), _varint),
    "intOrString": (BYTES, _read_int_or_string, _int_or_string),
    "long": (VARINT, lambda value: signed(value, 64), _varint),
    "microtime": (BYTES, partial(_read_time, is_micro=True), _time),
    "quantity": (
        BYTES,
        lambda value: _text(_bytes(value).get(1, b"0")),
        lambda value: bytes_field(1, str(value).encode()),
    ),
    "str": (BYTES, _text, lambda value: value.encode()),
    "time": (BYTES, _read_time, _time),
}
