"""Objects in protobuf, as Kubernetes' own clients send them, read as the wire form that JSON has.

The body is an envelope (apimachinery, pkg/runtime/types.proto Unknown) behind four bytes that say what it is. What
a Go client would leave out of JSON is left out here too. Fields that no message has are passed over, as everywhere in
protobuf. No message contains itself, so that nesting is bounded by the messages.
"""

from __future__ import annotations

import math
from typing import Any

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.server.protobuf.leaves import leaf, wire_type_of, zero
from podium.server.protobuf.messages import Field, Message, fields_of, message_of
from podium.server.protobuf.wire import BYTES, VARINT, Value, fields, varints

MAGIC = b"k8s\x00"
"""How every body begins."""

MAX_BYTES = 3 * 1024 * 1024
"""How long a body may be (apiserver, MaxRequestBodyBytes)."""

_API_VERSION = _KEY = 1
_KIND = _VALUE = 2


def decode(body: bytes) -> Raw:
    """The object in a body. Raises ValueError for a body that is none, is too long, or of a kind not known here."""
    if len(body) > MAX_BYTES:
        raise ValueError(f"protobuf: the body has {len(body)} bytes; at most {MAX_BYTES} are read")
    if not body.startswith(MAGIC):
        raise ValueError("protobuf: the body does not begin as Kubernetes' objects do")
    api_version, kind, encoding, content = _envelope(body[len(MAGIC) :])
    if encoding:
        raise ValueError(f"protobuf: the object is encoded as {shown(encoding)}, which is not read")
    message = message_of(api_version, kind)
    if message is None:
        raise ValueError(f"protobuf: objects of kind {shown(kind)} of {shown(api_version)} are read as JSON only")
    return {"apiVersion": api_version, "kind": kind, **_read(content, message)}


def _envelope(data: bytes) -> tuple[str, str, str, bytes]:
    """The object's version and kind, how its bytes are encoded ("" for plain), and the bytes."""
    parts = _bytes(data)
    types = _bytes(parts.get(1, b""))
    api_version, kind, encoding = (
        leaf("str", BYTES, part) for part in (types.get(_API_VERSION, b""), types.get(_KIND, b""), parts.get(3, b""))
    )
    return api_version, kind, encoding, parts.get(2, b"")


def _bytes(data: bytes) -> dict[int, bytes]:
    return {number: value for number, _, value in fields(data) if isinstance(value, bytes)}


def _read(data: bytes, message: Message) -> Raw:
    """The message as an object."""
    known = fields_of(message)
    result: Raw = {}
    for number, wire_type, value in fields(data):
        field = known.get(number)
        if field is None:
            continue
        if field.is_list:
            result.setdefault(field.name, []).extend(_items(field, wire_type, value))
        elif field.is_map:
            key, entry = _entry(field.type, _checked(wire_type, value))
            result.setdefault(field.name, {})[key] = entry
        else:
            _set(result, field, wire_type, value)
    return result


def _set(result: Raw, field: Field, wire_type: int, value: Value) -> None:
    """Take in a field that there is one of. A message that comes again is merged, any other value replaced."""
    if not isinstance(field.type, str):
        inner = _read(_checked(wire_type, value), field.type)
        if not field.name:
            result.update(inner)
        elif inner or field.says_zero:
            result[field.name] = {**result.get(field.name, {}), **inner}
        return
    read = _leaf(field.type, wire_type, value)
    if read is None or (not field.says_zero and read in (0, "", [])):
        result.pop(field.name, None)
    else:
        result[field.name] = read


def _items(field: Field, wire_type: int, value: Value) -> list[Any]:
    """The item of a list, or the items of one that is packed."""
    type_ = field.type
    if isinstance(type_, str) and wire_type == BYTES and wire_type_of(type_) == VARINT:
        return [_leaf(type_, VARINT, number) for number in varints(_checked(wire_type, value))]
    return [_single(type_, wire_type, value)]


def _entry(type_: str | Message, data: bytes) -> tuple[str, Any]:
    """The key and the value of an entry of a map."""
    key = ""
    entry = zero(type_) if isinstance(type_, str) else {}
    for number, wire_type, value in fields(data):
        if number == _KEY:
            key = _leaf("str", wire_type, value)
        elif number == _VALUE:
            entry = _single(type_, wire_type, value)
    return key, entry


def _single(type_: str | Message, wire_type: int, value: Value) -> Any:
    if isinstance(type_, str):
        return _leaf(type_, wire_type, value)
    return _read(_checked(wire_type, value), type_)


def _leaf(type_: str, wire_type: int, value: Value) -> Any:
    read = leaf(type_, wire_type, value)
    if isinstance(read, float) and not math.isfinite(read):
        raise ValueError("protobuf: a number is not finite")
    return read


def _checked(wire_type: int, value: Value) -> bytes:
    if wire_type != BYTES or not isinstance(value, bytes):
        raise ValueError(f"protobuf: a message has the wire type {wire_type}")
    return value
