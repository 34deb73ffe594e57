"""A fast JSON reader based on msgspec, for values that `podium.api.input.json` would certainly read identically.

msgspec is many times faster than Python's reader, but keeps the last of two equal keys and reads a few numbers
differently. If re-encoding a value reproduces its text, the text had no such construct.
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

# Less than the limit of a document: the text may be a deeply nested part.
_MOST_LEVELS = MAX_DEPTH - 10
# Up to this depth, re-encoding a part to search for nulls pays off; deeper it would only be encoded once more.
_LEVELS_SEEN_IN_TEXT = 3

# Go's encoder escapes these characters, msgspec does not.
_ESCAPED = ((b"\\u003c", b"<"), (b"\\u003e", b">"), (b"\\u0026", b"&"))


class UncertainError(Exception):
    """An error for text whose content or problem only a full parse can determine."""


def decode(text: Text) -> Any:
    """Return the value, without nulls except in lists, as `json.parse_documents` returns it.

    Raises UncertainError for a text that must be parsed with its surroundings.
    """
    try:
        value, has_nulls = decode_with_nulls(text)
        return without_nulls(value) if has_nulls else value
    except UncertainError:
        pass
    try:
        ((_, value),) = json.parse_documents(bytes(text).decode())
    except (InputError, UnicodeDecodeError, ValueError):
        raise UncertainError from None
    if not json.is_shallow(value, _MOST_LEVELS):
        raise UncertainError
    return value


def decode_with_nulls(text: Text) -> tuple[Any, bool]:
    """Return the value with its nulls, and whether it may have any. Raises UncertainError."""
    try:
        value = msgspec.json.decode(text)
        written = msgspec.json.encode(value)
        compact = msgspec.json.format(text, indent=-1)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise UncertainError from None
    if written != compact:
        for escaped, letter in _ESCAPED:
            compact = compact.replace(escaped, letter)
        if written != compact:
            raise UncertainError
    # Most brackets belong to empty or sibling objects.
    if written.count(b"{") + written.count(b"[") > _MOST_LEVELS and not json.is_shallow(value, _MOST_LEVELS):
        raise UncertainError
    return value, b"null" in written


def without_nulls(value: Any) -> Any:
    """Remove null entries of objects from the value in place, and return it; it must have no other reference."""
    level, depth = [value], 0
    while level:
        # Most parts contain no null, which a text search shows faster than a traversal.
        if depth < _LEVELS_SEEN_IN_TEXT:
            level = [part for part in level if b"null" in msgspec.json.encode(part)]
        level = [inner for part in level for inner in _parts_without_nulls(part)]
        depth += 1
    return value


def _parts_without_nulls(part: Any) -> list[Any]:
    """Return the objects and lists directly within a part, after removing its null entries."""
    parts: Iterable[Any] = part
    if type(part) is dict:
        parts = part.values()
        if None in parts:
            for key in [key for key, inner in part.items() if inner is None]:
                del part[key]
    elif type(part) is not list:
        return []
    return [inner for inner in parts if type(inner) is dict or type(inner) is list]
