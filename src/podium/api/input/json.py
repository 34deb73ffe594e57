"""JSON documents as plain dictionaries, lists, text and numbers.

Python's reader accepts NaN, turns 1e999 into infinity and keeps the last of two equal keys; `parse_documents` refuses
them. `decode` is many times faster, for values that `parse_documents` would certainly read identically: msgspec keeps
the last of two equal keys and reads a few numbers differently, but if re-encoding a value reproduces its text, the text
had no such construct.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from podium.api.errors import InputError, field_path, shown
from podium.api.input.yaml import MAX_DEPTH

_BEGIN = re.compile(r"[^ \t\r\n]")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class NotJSONError(InputError):
    """An error for invalid JSON syntax; the text may be YAML in flow style, which begins alike."""


class _Refused(NamedTuple):
    """A placeholder for a value that objects cannot hold; `key` is that of an entry that is given twice."""

    problem: str
    key: str | None = None


def parse_documents(text: str) -> Iterator[tuple[int, Any]]:
    """Yield each of several consecutive documents with its 1-based number; null entries are omitted.

    Raises InputError with the document's number, and either the line and the column or the field's path; NotJSONError
    for broken syntax.
    """
    has_surrogates = _SURROGATE.search(text) is not None
    number, end = 1, 0
    while match := _BEGIN.search(text, end):
        value, end = _parse(text, match.start(), number, has_surrogates)
        yield number, value
        number += 1


def _parse(text: str, position: int, number: int, has_surrogates: bool) -> tuple[Any, int]:
    reader = _Reader()
    try:
        value, end = reader.decode(text, position)
        if not is_shallow(value, MAX_DEPTH):
            raise RecursionError
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}"
        raise NotJSONError(problem, document=number) from None
    except RecursionError:
        raise InputError(f"nested too deep; at most {MAX_DEPTH} levels are allowed", document=number) from None
    except ValueError:
        # Python refuses integers of more than 4,300 digits, since parsing takes quadratic time.
        raise InputError("a number has thousands of digits", document=number) from None
    if reader.has_refused or (has_surrogates and not _is_unicode(json.dumps(value, ensure_ascii=False))):
        path, problem = _refused(value)
        raise InputError(problem, document=number, path=path)
    return value, end


def is_shallow(value: Any, most: int) -> bool:
    """Return whether objects and lists are nested at most so deep."""
    level = [value]
    for _ in range(most + 1):
        collections = [part for part in level if type(part) is dict or type(part) is list]
        if not collections:
            return True
        level = []
        for collection in collections:
            level.extend(collection.values() if type(collection) is dict else collection)
    return False


def _is_unicode(text: str) -> bool:
    """Return whether the text can be encoded as UTF-8: a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Reader:
    """A reader of one document, in which placeholders stand for refused values."""

    def __init__(self) -> None:
        self.has_refused = False
        self.decode = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_float=self._float,
            parse_constant=lambda text: self._refuse(f"{text} is not a number that objects can hold"),
        ).raw_decode

    def _object(self, entries: list[tuple[str, Any]]) -> dict[str, Any] | _Refused:
        read = dict(entries)
        if len(read) != len(entries):
            return self._refuse("is given twice", Counter(key for key, _ in entries).most_common(1)[0][0])
        if None in read.values():
            return {key: value for key, value in read.items() if value is not None}
        return read

    def _float(self, text: str) -> float | _Refused:
        number = float(text)
        return self._refuse(f"{shown(text)} is too large for a number") if math.isinf(number) else number

    def _refuse(self, problem: str, key: str | None = None) -> _Refused:
        self.has_refused = True
        return _Refused(problem, key)


def _refused(root: Any) -> tuple[str, str]:
    """Return the path and the problem of the first refused value."""
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, _Refused):
            return path if value.key is None else field_path(path, value.key), value.problem
        if isinstance(value, str) and not _is_unicode(value):
            return path, f"{shown(value)} has half a surrogate pair, which is not a character"
        if isinstance(value, dict):
            for key in value:
                if not _is_unicode(key):
                    return path, f"the key {shown(key)} has half a surrogate pair, which is not a character"
            waiting.extend((field_path(path, key), entry) for key, entry in reversed(value.items()))
        elif isinstance(value, list):
            waiting.extend((f"{path}[{index}]", item) for index, item in reversed(list(enumerate(value))))
    raise AssertionError("nothing is refused")


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
        ((_, value),) = parse_documents(bytes(text).decode())
    except (InputError, UnicodeDecodeError, ValueError):
        raise UncertainError from None
    if not is_shallow(value, _MOST_LEVELS):
        raise UncertainError
    return value


def decode_with_nulls(text: Text) -> tuple[Any, bool]:
    """Return the value with its nulls, and whether it may have any. Raises UncertainError."""
    try:
        value = msgspec.json.decode(text)
        written = msgspec.json.encode(value)
        compact = written if written == text else msgspec.json.format(text, indent=-1)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise UncertainError from None
    if written != compact:
        for escaped, letter in _ESCAPED:
            compact = compact.replace(escaped, letter)
        if written != compact:
            raise UncertainError
    # Most brackets belong to empty or sibling objects.
    if written.count(b"{") + written.count(b"[") > _MOST_LEVELS and not is_shallow(value, _MOST_LEVELS):
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
