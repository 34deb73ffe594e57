"""JSON values read by msgspec, where they are certainly what `podium.api.input.json` would read.

msgspec is many times faster than Python's reader, but keeps the last of two equal keys and reads a few numbers in other
ways. A value that it writes again just as it stood there had no such thing in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from podium.api.errors import InputError
from podium.api.input import json
from podium.api.input.yaml import MAX_DEPTH

Text = bytes | msgspec.Raw
"""A JSON value as bytes, or as a part of a larger one."""

# Less than a document may have: the text may be a part that lies deep in one.
_MOST_LEVELS = MAX_DEPTH - 10
# So deep it is worth to write a part anew to see whether a null is in it; deeper it would only be written once more.
_LEVELS_SEEN_IN_TEXT = 3

# Go's encoder writes these letters as escape sequences, msgspec as they are.
_ESCAPED = ((b"\\u003c", b"<"), (b"\\u003e", b">"), (b"\\u0026", b"&"))


class UncertainError(Exception):
    """Only a closer reading can tell what the text holds, or what is wrong with it."""


def decode(text: Text) -> Any:
    """The value, without nulls but in lists, as `json.parse_documents` gives it.

    Raises UncertainError for a text that has to be read together with what is around it.
    """
    try:
        value, has_nulls = decode_with_nulls(text)
    except UncertainError:
        return _decode_closely(text)
    return without_nulls(value) if has_nulls else value


def decode_with_nulls(text: Text) -> tuple[Any, bool]:
    """The value with its nulls, and whether it may have any. Raises UncertainError."""
    try:
        value = msgspec.json.decode(text)
        written = msgspec.json.encode(value)
        compact = msgspec.json.format(text, indent=-1)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise UncertainError from None
    if written != compact and written != _unescaped(compact):
        raise UncertainError
    brackets = written.count(b"{") + written.count(b"[")
    # Most of them are of objects that are empty, or stand side by side.
    if brackets > _MOST_LEVELS and brackets - _empty(written) > _MOST_LEVELS and not _is_shallow(value):
        raise UncertainError
    return value, b"null" in written


def _decode_closely(text: Text) -> Any:
    try:
        ((_, value),) = json.parse_documents(bytes(text).decode())
    except (InputError, UnicodeDecodeError, ValueError):
        raise UncertainError from None
    if not _is_shallow(value):
        raise UncertainError
    return value


def without_nulls(value: Any) -> Any:
    """The value, which nobody else has yet, without the entries of objects that are null: they are taken out of it."""
    level, depth = [value], 0
    while level:
        # Most parts have none anywhere, which is seen sooner in their text than by a look at all that is in them.
        if depth < _LEVELS_SEEN_IN_TEXT:
            level = [part for part in level if b"null" in msgspec.json.encode(part)]
        level = [inner for part in level for inner in _parts_without_nulls(part)]
        depth += 1
    return value


def _parts_without_nulls(part: Any) -> list[Any]:
    """The objects and lists right within a part, of which the entries that are null are taken out."""
    parts: Iterable[Any] = part
    if type(part) is dict:
        parts = part.values()
        if None in parts:
            for key in [key for key, inner in part.items() if inner is None]:
                del part[key]
    elif type(part) is not list:
        return []
    return [inner for inner in parts if type(inner) is dict or type(inner) is list]


def _unescaped(compact: bytes) -> bytes:
    for escaped, letter in _ESCAPED:
        compact = compact.replace(escaped, letter)
    return compact


def _empty(written: bytes) -> int:
    """How many objects and lists have nothing in them that could lie deeper; at most as many as there are."""
    return written.count(b"{}") + written.count(b"[]")


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(_MOST_LEVELS + 1):
        level = [inner for part in level for inner in _parts(part) if type(inner) is dict or type(inner) is list]
        if not level:
            return True
    return False


def _parts(value: Any) -> Any:
    if type(value) is dict:
        return value.values()
    return value if type(value) is list else ()
