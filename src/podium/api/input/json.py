"""JSON documents as plain dictionaries, lists, text and numbers.

Python's reader accepts NaN, turns 1e999 into infinity and keeps the last of two equal keys; this module refuses them.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from podium.api.errors import InputError, field_path, shown
from podium.api.input.yaml import MAX_DEPTH

_BEGIN = re.compile(r"[^ \t\r\n]")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class NotJSONError(InputError):
    """An error for invalid JSON syntax; the text may be YAML in flow style, which begins alike."""


class _Refused:
    """A placeholder for a value that objects cannot hold; `key` is that of an entry that is given twice."""

    def __init__(self, problem: str, key: str | None = None) -> None:
        self.problem = problem
        self.key = key


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
        raise InputError(f"nested too deep; at most {MAX_DEPTH} levels are taken", document=number) from None
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
            return path, f"{shown(value)} has half a surrogate pair, which is no character"
        if isinstance(value, dict):
            for key in value:
                if not _is_unicode(key):
                    return path, f"the key {shown(key)} has half a surrogate pair, which is no character"
            waiting.extend((field_path(path, key), entry) for key, entry in reversed(value.items()))
        elif isinstance(value, list):
            waiting.extend((f"{path}[{index}]", item) for index, item in reversed(list(enumerate(value))))
    raise AssertionError("nothing is refused")
