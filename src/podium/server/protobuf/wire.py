"""The encoding of protobuf: fields with a number, each a varint, 4 or 8 bytes, or so many bytes.

Source: protobuf.dev/programming-guides/encoding. Groups, which nobody writes any more, are refused.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
"""The wire types."""

_FIXED = {FIXED_64: 8, FIXED_32: 4}
_LONGEST_VARINT = 10

Value = int | bytes
"""A varint as an unsigned integer of 64 bits, or the bytes of any other value."""


def fields(data: bytes) -> Iterator[tuple[int, int, Value]]:
    """Each field of a message: its number, wire type and value. Raises ValueError for what is no message."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if not number:
            raise ValueError("protobuf: a field has the number 0")
        if wire_type == VARINT:
            value, position = _varint(data, position)
            yield number, wire_type, value
            continue
        if wire_type == BYTES:
            length, position = _varint(data, position)
        elif wire_type in _FIXED:
            length = _FIXED[wire_type]
        else:
            raise ValueError(f"protobuf: field {number} has the wire type {wire_type}, which is not read")
        if length > end - position:
            raise ValueError(f"protobuf: field {number} is cut off")
        yield number, wire_type, data[position : position + length]
        position += length


def varints(data: bytes) -> Iterator[int]:
    """The values of a packed list. Raises ValueError for what is none."""
    position = 0
    while position < len(data):
        value, position = _varint(data, position)
        yield value


def signed(value: int, bits: int) -> int:
    """A varint as a signed integer of so many bits; what does not fit is cut off, as by every reader of protobuf."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """The varint that begins at a position, and where it ends."""
    value = shift = 0
    for index in range(position, min(position + _LONGEST_VARINT, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, index + 1
        shift += 7
    raise ValueError("protobuf: a number is cut off or too long")
