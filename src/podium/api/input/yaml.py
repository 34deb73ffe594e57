"""YAML documents as plain dictionaries, lists, text and numbers, and the dumper that writes them.

libyaml parses, and this module resolves plain scalars as kubectl and kube-apiserver do: by the resolver of go-yaml v2,
then through JSON (sigs.k8s.io/yaml). `yes`, `no`, `on`, `off`, `y` and `n` are booleans, `1_000`, `017`, `0o17`, `0x1F`
and `0b11` are integers, and `1:30` and dates are text. PyYAML's own loaders differ in most of these. Anchors, aliases
and merge keys (`<<`) are followed up to a size limit, because they can expand a small file into a huge one. Tags are
refused.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import yaml
from msgspec import Struct

from podium.api.errors import InputError, shown

MAX_DEPTH = 200
"""The maximum nesting depth of objects and lists."""

MAX_UNFOLDED = 100_000
"""The maximum number of values that aliases may add to a text, counted at each use; long text counts as several."""

_TEXT_LIKE_A_VALUE = 100
# The depth of a List's objects.
_PROGRESS_DEPTH = 2
_CONSTANTS: dict[str, bool | None] = {
    form: value
    for value, words in ((None, "~ null"), (True, "y yes true on"), (False, "n no false off"))
    for word in words.split()
    for form in (word, word.capitalize(), word.upper())
} | {"": None}
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]{0,19}|0))", re.ASCII)
_BASES = (16, 2, 8, 10)
# go-yaml parses the part after 0b separately, with its sign.
_SIGNED_BINARY = re.compile(r"0b([-+][01]+)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
# Go's ParseFloat receives text that begins with a point with its underscores, which may only separate digits.
_FRACTION = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)
_INT64_BOUND = 2**63
_MAX_SINGLE_DIGITS = 9
_MIN_FIXED_EXPONENT, _MAX_FIXED_EXPONENT = -4, 5
# Text that this or another YAML reader takes for a number, a time or a boolean.
_AMBIGUOUS = re.compile(r"[-+.0-9].*|[yYnN]|[oO](?:n|N|ff|FF)", re.DOTALL)


class Dumper(yaml.CSafeDumper):
    """A dumper that writes no aliases, and quotes text that a reader could take for another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    style = "'" if _AMBIGUOUS.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _represent_text)


def parse_documents(
    text: str, progress: Callable[[float], None] | None = None, repeated: list[str] | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield each document that is not empty, with its 1-based number; null entries are omitted.

    `progress` receives the share of the text that has been read, from 0 to 1. `repeated` receives the problems of keys
    that occur twice, in go-yaml's words; the last value counts. Without it they are errors. Raises InputError with the
    document's number, the line and the column.
    """
    return _Composer(text, progress, repeated=repeated).documents()


def parse_part(text: str, depth: int) -> Any:
    """Return the value of a text that is nested at ``depth`` in another text.

    Raises InputError unless it is a single value, and for aliases, which are limited for the whole text.
    """
    composer = _Composer(text, None, depth)
    found = [value for _, value in composer.documents()]
    if len(found) != 1 or composer.unfolded:
        raise InputError("takes the text around it")
    return found[0]


def resolve_scalar(text: str) -> str | int | float | bool | None:
    """Return the value of a plain scalar: a constant, a number of 64 bits, or its text.

    Source: go-yaml v2, resolve.go.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    digits = text.replace("_", "")
    if text[0] == ".":
        is_float = _FRACTION.fullmatch(text)
    else:
        integer = _integer(digits)
        if integer is not None:
            return integer
        is_float = _FLOAT.fullmatch(digits)
    value = float(digits) if is_float else math.inf
    return text if math.isinf(value) else value


def _integer(digits: str) -> int | None:
    """Return the integer that the digits are; None if they are none or do not fit 64 bits."""
    if found := _SIGNED_BINARY.fullmatch(digits):
        value = int(found[1], 2)
    elif found := _INTEGER.fullmatch(digits):
        magnitude, base = next((part, base) for part, base in zip(found.groups()[1:], _BASES, strict=True) if part)
        value = int(found[1] + magnitude, base)
    else:
        return None
    bound = _INT64_BOUND if digits[0] in "+-" else 2 * _INT64_BOUND
    return value if -_INT64_BOUND <= value < bound else None


def is_text(plain: str) -> bool:
    """Return whether a plain scalar of letters, digits and the characters allowed in names is text."""
    return plain[:1].isalnum() and not plain.endswith(":") and isinstance(resolve_scalar(plain), str)


def _key_text(value: int | float) -> str:
    """Return the text of a numeric key; for a float, the shortest of 32 bits in Go's format 'g' (sigs.k8s.io/yaml)."""
    if isinstance(value, int):
        return str(value)
    (single,) = struct.unpack("f", struct.pack("f", value))
    forms = (f"{single:.{digits}e}" for digits in range(_MAX_SINGLE_DIGITS))
    shortest = next(form for form in forms if struct.unpack("f", struct.pack("f", float(form))) == (single,))
    exponent = int(shortest.partition("e")[2])
    return shortest if exponent < _MIN_FIXED_EXPONENT or exponent > _MAX_FIXED_EXPONENT else f"{Decimal(shortest):f}"


# The events that begin a value.
_Valued = yaml.ScalarEvent | yaml.CollectionStartEvent


class _Anchored(Struct, frozen=True):
    """A value with an anchor: the number of values within it, and their maximum depth."""

    value: Any
    size: int
    height: int


class _Composer:
    """A builder of values from libyaml's events. The value of an alias is shared, not copied, and never mutated."""

    def __init__(
        self, text: str, progress: Callable[[float], None] | None, depth: int = 0, repeated: list[str] | None = None
    ) -> None:
        self._depth = depth
        self._repeated = repeated
        self._length = len(text)
        self._progress = progress
        self.events = yaml.parse(text, Loader=yaml.CSafeLoader)
        self.number = 1
        # The anchors of the document; None for one whose value is incomplete.
        self._anchors: dict[str, _Anchored | None] = {}
        # The number of values so far, including those of aliases, and the number of the latter.
        self._size = 0
        self.unfolded = 0
        # The maximum depth since the last reset.
        self._deepest = 0

    def documents(self) -> Iterator[tuple[int, Any]]:
        try:
            for event in self.events:
                if isinstance(event, yaml.DocumentStartEvent):
                    self._anchors.clear()
                    value = self._node(next(self.events), self._depth)
                    if value is not None:
                        yield self.number, value
                elif isinstance(event, yaml.DocumentEndEvent):
                    self.number += 1
        except yaml.YAMLError as error:
            problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
            place = _place(getattr(error, "problem_mark", None))
            # libyaml stops in the document after the last complete one.
            raise InputError(f"{place}not valid YAML: {problem}", document=self.number) from None

    def _node(self, event: yaml.Event, depth: int) -> Any:
        """Return the value of an event; one with an anchor is recorded for its aliases."""
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event, depth)
        if not isinstance(event, _Valued):
            raise TypeError(f"unexpected YAML event {event}")
        if event.anchor is None:
            return self._value(event, depth)
        self._anchors[event.anchor] = None
        size, deepest = self._size, self._deepest
        self._deepest = depth
        value = self._value(event, depth)
        self._anchors[event.anchor] = _Anchored(value, self._size - size, self._deepest - depth)
        self._deepest = max(deepest, self._deepest)
        return value

    def _value(self, event: _Valued, depth: int) -> Any:
        if event.tag is not None:
            raise self._error(event, f"the tag {shown(event.tag)} is not supported; put text in quotes instead")
        self._size += 1
        if isinstance(event, yaml.ScalarEvent):
            self._size += len(event.value) // _TEXT_LIKE_A_VALUE
            text: str = event.value
            value = resolve_scalar(text) if event.implicit[0] else text
            if not isinstance(value, int | float) or isinstance(value, bool):
                return value
            if not math.isfinite(value):
                raise self._error(event, f"{text} is not a number that objects can hold")
            # As JSON carries it to an object: an integer if 64 signed bits hold it, a float otherwise.
            fits = -_INT64_BOUND <= value < _INT64_BOUND
            return int(value) if fits and value == int(value) else float(value)
        self._reach(event, depth + 1)
        return self._sequence(depth + 1) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(depth + 1)

    def _aliased(self, event: yaml.AliasEvent, depth: int) -> Any:
        if event.anchor not in self._anchors:
            raise self._error(event, f"the alias *{event.anchor} refers to no anchor before it")
        anchored = self._anchors[event.anchor]
        if anchored is None:
            raise self._error(event, f"the alias *{event.anchor} is within the value that it refers to")
        self._reach(event, depth + anchored.height)
        self._size += anchored.size
        self.unfolded += anchored.size
        if self.unfolded > MAX_UNFOLDED:
            raise self._error(event, f"aliases bring in more than {MAX_UNFOLDED} values; write some of them out")
        return anchored.value

    def _reach(self, event: yaml.Event, depth: int) -> None:
        """Record the depth of a value."""
        if depth > MAX_DEPTH:
            raise self._error(event, f"nested too deep; at most {MAX_DEPTH} levels are allowed")
        self._deepest = max(self._deepest, depth)

    def _sequence(self, depth: int) -> list[Any]:
        items: list[Any] = []
        for event in self.events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._node(event, depth))
            if depth <= _PROGRESS_DEPTH and self._progress is not None and event.start_mark is not None:
                self._progress(event.start_mark.index / self._length)
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._key(event, depth)
            if key == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
                merged.extend(self._merged(event, depth))
                continue
            if key in entries:
                if self._repeated is None or event.start_mark is None:
                    raise self._error(event, f"the key {shown(key)} is given twice")
                self._repeated.append(f'line {event.start_mark.line + 1}: key "{key}" already set in map')
            entries[key] = self._node(next(self.events), depth)
        for brought_in in merged:
            entries = {**brought_in, **entries}
        return {key: value for key, value in entries.items() if value is not None}

    def _merged(self, event: yaml.Event, depth: int) -> list[dict[str, Any]]:
        """Return the objects of a merge key; explicit fields take precedence, then the first object."""
        value = self._node(next(self.events), depth)
        objects = value if isinstance(value, list) else [value]
        if not all(isinstance(object_, dict) for object_ in objects):
            raise self._error(event, "the merge key << takes an object, or a list of objects")
        return objects

    def _key(self, event: yaml.Event, depth: int) -> str:
        """Return the text of a key; numbers and booleans become theirs."""
        if isinstance(event, yaml.ScalarEvent) and event.tag is None and event.anchor is None and event.implicit[0]:
            self._size += 1 + len(event.value) // _TEXT_LIKE_A_VALUE
            # A number in its written form: JSON would not distinguish 1e6 from 1000000.
            key = resolve_scalar(event.value)
        else:
            key = self._node(event, depth) if isinstance(event, yaml.ScalarEvent | yaml.AliasEvent) else None
        if isinstance(key, str):
            return key
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, int | float) and abs(key) < _INT64_BOUND:
            return _key_text(key)
        raise self._error(event, "a key must be text")

    def _error(self, event: yaml.Event, problem: str) -> InputError:
        return InputError(f"{_place(event.start_mark)}{problem}", document=self.number)


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
