"""JSON documents as plain dictionaries, lists, text and numbers.

Python's reader accepts NaN, turns 1e999 into infinity and keeps the last of two equal keys; this module refuses them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from podium.api.errors import InputError, field_path, shown
from podium.api.input.yaml import MAX_DEPTH

_WHITE_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class NotJSONError(InputError):
    """An error for invalid JSON syntax; the text may be YAML in flow style, which begins alike."""


class _RefusedError(Exception):
    """An error for refused content in the document; a second pass finds its position."""


class _Refused:
    """A placeholder for a refused value in the second pass."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


class _Entries(list[tuple[str, Any]]):
    """The entries of an object in order, in the second pass."""


def parse_documents(text: str) -> Iterator[tuple[int, Any]]:
    """Yield each of several consecutive documents with its 1-based number; null entries are omitted.

    Raises InputError with the document's number, and either the line and the column or the field's path; NotJSONError
    for broken syntax.
    """
    has_surrogates = _SURROGATE.search(text) is not None
    number, position = 1, _skip_space(text, 0)
    while position < len(text):
        value, end = _parse(text, position, number, has_surrogates)
        yield number, value
        number, position = number + 1, _skip_space(text, end)


def _skip_space(text: str, position: int) -> int:
    match = _WHITE_SPACE.match(text, position)
    return match.end() if match else position


def _parse(text: str, position: int, number: int, has_surrogates: bool) -> tuple[Any, int]:
    try:
        return _read(text, position, number, has_surrogates)
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}"
        raise NotJSONError(problem, document=number) from None
    except RecursionError:
        raise InputError(f"nested too deep; at most {MAX_DEPTH} levels are taken", document=number) from None
    except ValueError:
        # Python refuses integers of more than 4,300 digits, since parsing takes quadratic time.
        raise InputError("a number has thousands of digits", document=number) from None


def _read(text: str, position: int, number: int, has_surrogates: bool) -> tuple[Any, int]:
    try:
        value, end = _READER.raw_decode(text, position)
        if not is_shallow(value, MAX_DEPTH):
            raise RecursionError
        if has_surrogates and not _is_unicode(json.dumps(value, ensure_ascii=False)):
            raise _RefusedError
    except _RefusedError:
        # A syntax error may follow the refused value; this pass then finds it.
        path, problem = _refused(_SECOND_READER.raw_decode(text, position)[0])
        raise InputError(problem, document=number, path=path) from None
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


def _object(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(entries)
    if len(read) != len(entries):
        raise _RefusedError
    if None in read.values():
        return {key: value for key, value in read.items() if value is not None}
    return read


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _RefusedError
    return number


def _constant(_text: str) -> float:
    raise _RefusedError


def _float_or_refused(text: str) -> float | _Refused:
    number = float(text)
    return _Refused(f"{shown(text)} is too large for a number") if math.isinf(number) else number


_READER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)
_SECOND_READER = json.JSONDecoder(
    object_pairs_hook=_Entries,
    parse_float=_float_or_refused,
    parse_constant=lambda text: _Refused(f"{text} is not a number that objects can hold"),
)


def _refused(root: Any) -> tuple[str, str]:
    """Return the path and the problem of the first refused value in the second pass."""
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, _Refused):
            return path, value.problem
        if isinstance(value, str) and not _is_unicode(value):
            return path, f"{shown(value)} has half a surrogate pair, which is no character"
        if isinstance(value, _Entries):
            seen: set[str] = set()
            for key, _ in value:
                if key in seen:
                    return field_path(path, key), "is given twice"
                seen.add(key)
                if not _is_unicode(key):
                    return path, f"the key {shown(key)} has half a surrogate pair, which is no character"
            waiting.extend((field_path(path, key), entry) for key, entry in reversed(value))
        elif isinstance(value, list):
            waiting.extend((f"{path}[{index}]", item) for index, item in reversed(list(enumerate(value))))
    raise AssertionError("the second reading found nothing to refuse")
