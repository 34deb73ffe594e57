"""Strict parsing of fields: each is taken once, and unknown fields are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from podium.api.errors import InputError, field_path, shown
from podium.api.quantity import parse_quantity
from podium.api.times import parse_duration

_REQUIRED = object()
Text = TypeVar("Text", bound=str)
Value = TypeVar("Value")


class Fields:
    """The fields of one object at `path`. Methods raise InputError with the path of the field.

    Readers of single values take a default for a missing field; without one the field is required.
    """

    def __init__(self, raw: dict[str, Any], path: str) -> None:
        self._left = dict(raw)
        self.path = path

    def has(self, name: str) -> bool:
        """Return whether a field is present and not taken yet."""
        return name in self._left

    def those_of(self, names: Iterable[str]) -> list[str]:
        """Return which of some fields are present and not taken yet, in the given order."""
        left = self._left
        return [name for name in names if name in left]

    def has_object(self, name: str) -> bool:
        """Return whether a field is an object."""
        return isinstance(self._left.get(name), dict)

    def optional(self, name: str, read: Callable[[str], Value], default: Value | None = None) -> Value | None:
        """Return the field's value by its reader, or a default."""
        return read(name) if self.has(name) else default

    def take(self, name: str, default: Any = _REQUIRED) -> Any:
        """Return the field's value without checks."""
        if name not in self._left and default is _REQUIRED:
            raise InputError("is missing, and must be given", path=field_path(self.path, name))
        return self._left.pop(name, default)

    def text(self, name: str, default: Any = _REQUIRED) -> str:
        """Return the field's value, which must be non-empty text."""
        return str(self._valid(name, default, lambda value: isinstance(value, str) and value, "is not text"))

    def boolean(self, name: str, default: bool) -> bool:
        """Return the field's value, which must be true or false."""
        return bool(self._valid(name, default, lambda value: isinstance(value, bool), "is neither true nor false"))

    def choice(self, name: str, allowed: Sequence[Text], default: Text) -> Text:
        """Return the field's value, which must be one of the allowed ones."""
        value = self._valid(name, default, lambda value: value in list(allowed), f"is not {' or '.join(allowed)}")
        return next(known for known in allowed if known == value)

    def number(self, name: str, default: Any = _REQUIRED, *, least: int | None = None) -> int:
        """Return the field's value, which must be a whole number of at least `least`."""
        is_given = self.has(name)
        value = int(self._valid(name, default, lambda value: _is_a(int, value), "is not a whole number"))
        if is_given and least is not None and value < least:
            raise self._wrong(name, f"{value} is less than {least}")
        return value

    def share(self, name: str, default: float) -> float:
        """Return the field's value, which must be a number from 0 to 1."""

        def is_share(value: Any) -> bool:
            return _is_a(int | float, value) and 0 <= value <= 1

        return float(self._valid(name, default, is_share, "is not a number from 0 to 1"))

    def duration_ns(self, name: str, default: Any = _REQUIRED) -> int:
        """Return the field's value in nanoseconds, which must be a duration of 0s or more."""
        if not self.has(name) and default is not _REQUIRED:
            return int(default)
        value = self._valid(name, _REQUIRED, _is_written, 'is no duration; write it as in "90s"')
        return self._at_least_0(name, parse_duration, value, f"{shown(value)} is negative; write 0s or more")

    def memory(self, name: str) -> str:
        """Return the field's value as text, which must be an amount of memory of 0 or more."""
        return self._amount(name, "memory", "1Gi")

    def cpu(self, name: str) -> str:
        """Return the field's value as text, which must be an amount of cpu of 0 or more."""
        return self._amount(name, "cpu", "500m")

    def _amount(self, name: str, what: str, example: str) -> str:
        value = self._valid(name, _REQUIRED, _is_written, f'is no amount of {what}; write it as in "{example}"')
        negative = f'"{value}" is negative; an amount of {what} is 0 or more'
        self._at_least_0(name, parse_quantity, str(value), negative)
        return str(value)

    def _valid(self, name: str, default: Any, is_valid: Callable[[Any], object], problem: str) -> Any:
        """Return the field's value, or the default of a missing one; ``problem`` says what an invalid value is not."""
        if not self.has(name) and default is not _REQUIRED:
            return default
        value = self.take(name)
        if not is_valid(value):
            raise self._wrong(name, f"{shown(value)} {problem}")
        return value

    def _at_least_0(self, name: str, parse: Callable[[Any], int], value: Any, negative: str) -> int:
        """Return what is written as a value; ``negative`` is the problem with one below 0."""
        try:
            parsed = parse(value)
        except ValueError as error:
            raise self._wrong(name, str(error)) from None
        if parsed < 0:
            raise self._wrong(name, negative)
        return parsed

    def key(self) -> str:
        """Return `namespace/name` from the fields of these names; the default namespace is `default`."""
        return f"{self.text('namespace', 'default')}/{self.text('name')}"

    def fields(self, name: str, *, is_optional: bool = False) -> Fields:
        """Return the field's value, which must be an object."""
        value, path = self.take(name, {} if is_optional else _REQUIRED), field_path(self.path, name)
        if not isinstance(value, dict):
            raise InputError(f"{shown(value)} is not an object", path=path)
        return Fields(value, path)

    def rest(self) -> dict[str, Any]:
        left, self._left = self._left, {}
        return left

    def list_of_fields(self, name: str) -> list[Fields]:
        """Return the fields of each of the field's objects; none for a missing field."""
        items, path = self.take(name, []), field_path(self.path, name)
        if not isinstance(items, list):
            raise InputError(f"{shown(items)} is not a list", path=path)
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                raise InputError(f"{shown(item)} is not an object", path=f"{path}[{index}]")
        return [Fields(item, f"{path}[{index}]") for index, item in enumerate(items)]

    def named_fields(self, name: str) -> Iterator[tuple[str, Fields]]:
        """Yield each of the field's objects with its name, which must be distinct; refuse fields that are not read."""
        found: set[str] = set()
        for fields in self.list_of_fields(name):
            given = fields.text("name")
            if given in found:
                raise InputError(f"{shown(given)} is given twice", path=f"{fields.path}.name")
            found.add(given)
            yield given, fields
            fields.refuse_others()

    def refuse_others(self) -> None:
        """Refuse remaining fields."""
        for name in self._left:
            raise InputError("is not a known field", path=field_path(self.path, name))

    def _wrong(self, name: str, problem: str) -> InputError:
        return InputError(problem, path=field_path(self.path, name))


def _is_a(type_: Any, value: Any) -> bool:
    """Return whether a value is of a type of numbers; true and false are no numbers."""
    return isinstance(value, type_) and not isinstance(value, bool)


def _is_written(value: Any) -> bool:
    """Return whether a value is text or a number, as durations and amounts are written."""
    return _is_a(str | int | float, value)


MOST_TIMES = 100_000
"""The largest number of repetitions of a step."""

MOST_STEPS = 1_000_000
"""The largest number of changes in a scenario."""


def read_repeat(step: Fields, at_ns: int, until_ns: int | None) -> list[int]:
    """Return the times at which a step is played; by default repetitions go on until the scenario ends.

    Raises InputError with the field's path for invalid values and endless repetitions.
    """
    if not step.has("repeat"):
        return [at_ns]
    given = step.fields("repeat")
    every_ns = given.duration_ns("every")
    if every_ns <= 0:
        raise InputError("is 0s; write how long after each time the next one is", path=f"{given.path}.every")
    if given.has("times"):
        times = given.number("times", least=1)
    elif until_ns is None:
        raise InputError("has no end; give times, or the scenario's until", path=given.path)
    else:
        times = max(0, (until_ns - at_ns) // every_ns) + 1
    given.refuse_others()
    if times > MOST_TIMES:
        raise InputError(f"is played {times:,} times; at most {MOST_TIMES:,} are taken", path=given.path)
    return [at_ns + number * every_ns for number in range(times)]
