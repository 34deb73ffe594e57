"""YAML documents as plain dictionaries, lists, text and numbers.

libyaml parses, and this module decides what the events mean, because PyYAML's own loaders read YAML 1.1: `no`
as false, `1:30` as 90, dates as dates. Here scalars follow the core schema of YAML 1.2, with the octal
numbers (0644) that Kubernetes' reader knows. Anchors, aliases and merge keys (`<<`) are followed, up to a size: they
can make a small file unfold into a huge one. Tags are refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from podium.api.errors import InputError, shown

MAX_DEPTH = 200
"""How deep objects and lists may lie in one another."""

MAX_UNFOLDED = 100_000
"""How many values aliases may bring into one text, each counted as often as it is used, and long text as several."""

_TEXT_LIKE_A_VALUE = 100
# Where the objects of a List are.
_TOLD_DEPTH = 2
_MERGE_KEY = "<<"
_MAX_NUMBER_LENGTH = 64
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER_START = frozenset("+-.0123456789")
_OCTAL = re.compile(r"([-+]?)0o?([0-7]+)", re.ASCII)
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_HEXADECIMAL = re.compile(r"0x([0-9a-fA-F]+)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)


def parse_documents(text: str, progress: Callable[[float], None] | None = None) -> Iterator[tuple[int, Any]]:
    """Each document that is not empty, with its 1-based number; null entries are left out.

    `progress` is told the share of the text that has been read, from 0 to 1. Raises InputError with the document's
    number, the line and the column.
    """
    composer = _Composer(text, progress)
    try:
        yield from composer.documents()
    except yaml.YAMLError as error:
        # libyaml stops in the document after the last one that it could finish.
        raise _not_yaml(error, composer.number) from None


def parse_part(text: str, depth: int) -> Any:
    """What a text holds that lies so deep in another, of which it is a part.

    Raises InputError for what is no single value, and for aliases, which count in the whole.
    """
    composer = _Composer(text, None, depth)
    try:
        found = [value for _, value in composer.documents()]
    except yaml.YAMLError as error:
        raise _not_yaml(error, composer.number) from None
    if len(found) != 1 or composer.has_aliases:
        raise InputError("takes the text around it")
    return found[0]


def is_text(plain: str) -> bool:
    """Whether letters, digits, and what may be between them in names, are text where they stand without quotes."""
    if not plain[:1].isalnum() or plain.endswith(":") or plain in _NULLS or plain in _BOOLEANS:
        return False
    if plain[0] not in _NUMBER_START:
        return True
    if len(plain) > _MAX_NUMBER_LENGTH:
        return False
    return not any(pattern.fullmatch(plain) for pattern in (_OCTAL, _DECIMAL, _HEXADECIMAL, _FLOAT))


# The events that begin a value of their own.
_Valued = yaml.ScalarEvent | yaml.CollectionStartEvent


@dataclass(frozen=True, slots=True)
class _Anchored:
    """A value that has an anchor: how many values it is made of, and how deep they lie in one another."""

    value: Any
    size: int
    height: int


class _Composer:
    """Builds values from libyaml's events. What an alias stands for is shared, not copied: nobody changes it."""

    def __init__(self, text: str, progress: Callable[[float], None] | None, depth: int = 0) -> None:
        self._depth = depth
        self._length = len(text)
        self._progress = progress
        self.events = yaml.parse(text, Loader=yaml.CSafeLoader)
        self.number = 1
        # The anchors of the document; None for one whose value is not complete.
        self._anchors: dict[str, _Anchored | None] = {}
        # Values so far, those that aliases bring in included, and how many of them aliases brought in.
        self._size = 0
        self._unfolded = 0
        # The greatest depth at which something lies since somebody began to ask.
        self._deepest = 0

    @property
    def has_aliases(self) -> bool:
        """Whether anything was brought in by one."""
        return self._unfolded > 0

    def documents(self) -> Iterator[tuple[int, Any]]:
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                value = self._node(next(self.events), self._depth)
                if value is not None:
                    yield self.number, value
            elif isinstance(event, yaml.DocumentEndEvent):
                self.number += 1

    def _node(self, event: yaml.Event, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event, depth)
        if not isinstance(event, _Valued):
            raise TypeError(f"unexpected YAML event {event}")
        return self._value(event, depth) if event.anchor is None else self._anchored(event, event.anchor, depth)

    def _value(self, event: _Valued, depth: int) -> Any:
        if event.tag is not None:
            raise self._error(event, f"the tag {shown(event.tag)} is not taken; put text in quotes instead")
        self._size += 1
        if isinstance(event, yaml.ScalarEvent):
            self._size += len(event.value) // _TEXT_LIKE_A_VALUE
            return self._scalar(event)
        self._reach(event, depth + 1)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(depth + 1)
        return self._mapping(depth + 1)

    def _anchored(self, event: _Valued, anchor: str, depth: int) -> Any:
        """The value, which is kept for the aliases that name it."""
        self._anchors[anchor] = None
        size, deepest = self._size, self._deepest
        self._deepest = depth
        value = self._value(event, depth)
        self._anchors[anchor] = _Anchored(value, self._size - size, self._deepest - depth)
        self._deepest = max(deepest, self._deepest)
        return value

    def _aliased(self, event: yaml.AliasEvent, depth: int) -> Any:
        """What the alias stands for."""
        if event.anchor not in self._anchors:
            raise self._error(event, f"the alias *{event.anchor} stands for nothing: no anchor before it has that name")
        anchored = self._anchors[event.anchor]
        if anchored is None:
            raise self._error(event, f"the alias *{event.anchor} stands within the value that it stands for")
        self._reach(event, depth + anchored.height)
        self._size += anchored.size
        self._unfolded += anchored.size
        if self._unfolded > MAX_UNFOLDED:
            raise self._error(event, f"aliases bring in more than {MAX_UNFOLDED} values; write some of them out")
        return anchored.value

    def _reach(self, event: yaml.Event, depth: int) -> None:
        """Something lies at that depth."""
        if depth > MAX_DEPTH:
            raise self._error(event, f"nested too deep; at most {MAX_DEPTH} levels are taken")
        self._deepest = max(self._deepest, depth)

    def _sequence(self, depth: int) -> list[Any]:
        items: list[Any] = []
        for event in self.events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._node(event, depth))
            if depth <= _TOLD_DEPTH and self._progress is not None and event.start_mark is not None:
                self._progress(event.start_mark.index / self._length)
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._key(event, depth)
            if key == _MERGE_KEY and _is_plain(event):
                merged.extend(self._merged(event, depth))
                continue
            if key in entries:
                raise self._error(event, f"the key {shown(key)} is given twice")
            entries[key] = self._node(next(self.events), depth)
        for brought_in in merged:
            entries = {**brought_in, **entries}
        return {key: value for key, value in entries.items() if value is not None}

    def _merged(self, event: yaml.Event, depth: int) -> list[dict[str, Any]]:
        """The objects that a merge key brings in: what is written beside it goes before, then the first of them."""
        value = self._node(next(self.events), depth)
        objects = value if isinstance(value, list) else [value]
        if not all(isinstance(object_, dict) for object_ in objects):
            raise self._error(event, "the merge key << takes an object, or a list of objects")
        return objects

    def _key(self, event: yaml.Event, depth: int) -> str:
        """The text of a key; numbers and booleans become theirs."""
        key = self._node(event, depth) if isinstance(event, yaml.ScalarEvent | yaml.AliasEvent) else None
        if isinstance(key, str):
            return key
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, int | float):
            return str(int(key)) if key == int(key) else str(key)
        raise self._error(event, "a key must be text")

    def _scalar(self, event: yaml.ScalarEvent) -> str | int | float | bool | None:
        text: str = event.value
        if not event.implicit[0]:
            return text
        if text in _NULLS:
            return None
        if text[0] in _NUMBER_START:
            return self._number(event, text)
        return _BOOLEANS.get(text, text)

    def _number(self, event: yaml.Event, text: str) -> str | int | float:
        """The number that the text is, or the text where it is none."""
        if _NOT_FINITE.fullmatch(text):
            raise self._error(event, f"{text} is not a number that objects can hold")
        if len(text) > _MAX_NUMBER_LENGTH:
            if _FLOAT.fullmatch(text) or _HEXADECIMAL.fullmatch(text):
                raise self._error(event, f"a number has at most {_MAX_NUMBER_LENGTH} characters; put text in quotes")
            return text
        if octal := _OCTAL.fullmatch(text):
            return int(octal[1] + octal[2], 8)
        if _DECIMAL.fullmatch(text):
            return int(text)
        if hexadecimal := _HEXADECIMAL.fullmatch(text):
            return int(hexadecimal[1], 16)
        if not _FLOAT.fullmatch(text):
            return text
        number = float(text)
        if math.isinf(number):
            raise self._error(event, f"{shown(text)} is too large for a number")
        return number

    def _error(self, event: yaml.Event, problem: str) -> InputError:
        return InputError(f"{_place(event.start_mark)}{problem}", document=self.number)


def _is_plain(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and bool(event.implicit[0])


def _not_yaml(error: yaml.YAMLError, number: int) -> InputError:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return InputError(f"{_place(getattr(error, 'problem_mark', None))}not valid YAML: {problem}", document=number)


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
