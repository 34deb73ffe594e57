"""Strict reading of an object's fields: each is taken once, and none may be left over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from podium.api.errors import InputError, field_path, shown
from podium.api.quantity import parse_quantity
from podium.api.times import parse_duration

_REQUIRED = object()
Text = TypeVar("Text", bound=str)


class Fields:
    """The fields of one object at `path`. Everything raises InputError with the path of the field.

    The readers of single values have a default for a field that is not there; without one, it must be there.
    """

    def __init__(self, raw: dict[str, Any], path: str) -> None:
        self._left = dict(raw)
        self.path = path

    def has(self, name: str) -> bool:
        """Whether a field is there and not taken yet."""
        return name in self._left

    def those_of(self, names: Iterable[str]) -> list[str]:
        """Which of some fields are there and not taken yet, in the order in which they are asked for."""
        left = self._left
        return [name for name in names if name in left]

    def has_object(self, name: str) -> bool:
        """Whether a field is there, and an object."""
        return isinstance(self._left.get(name), dict)

    def take(self, name: str, default: Any = _REQUIRED) -> Any:
        """The field's value, whatever it is."""
        if name not in self._left and default is _REQUIRED:
            raise InputError("is missing, and must be given", path=field_path(self.path, name))
        return self._left.pop(name, default)

    def text(self, name: str, default: Any = _REQUIRED) -> str:
        """The field's value, which must be text that is not empty."""
        if not self.has(name) and default is not _REQUIRED:
            return str(default)
        value = self.take(name)
        if not isinstance(value, str) or not value:
            raise self._wrong(name, f"{shown(value)} is not text")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        """The field's value, which must be true or false."""
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, f"{shown(value)} is neither true nor false")
        return value

    def choice(self, name: str, allowed: Sequence[Text], default: Text) -> Text:
        """The field's value, which must be one of those allowed."""
        value = self.take(name, default)
        found = next((known for known in allowed if known == value), None)
        if found is None:
            raise self._wrong(name, f"{shown(value)} is not {' or '.join(allowed)}")
        return found

    def number(self, name: str, default: Any = _REQUIRED, *, least: int | None = None) -> int:
        """The field's value, which must be a whole number, and not less than `least`."""
        if not self.has(name) and default is not _REQUIRED:
            return int(default)
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, f"{shown(value)} is not a whole number")
        if least is not None and value < least:
            raise self._wrong(name, f"{value} is less than {least}")
        return value

    def share(self, name: str, default: float) -> float:
        """The field's value, which must be a number from 0 to 1."""
        value = self.take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise self._wrong(name, f"{shown(value)} is not a number from 0 to 1")
        return float(value)

    def duration_ns(self, name: str, default: Any = _REQUIRED) -> int:
        """The field's value in nanoseconds, which must be a duration of 0s or more."""
        if not self.has(name) and default is not _REQUIRED:
            return int(default)
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._wrong(name, f'{shown(value)} is no duration; write it as in "90s"')
        try:
            duration = parse_duration(value)
        except ValueError as error:
            raise self._wrong(name, str(error)) from None
        if duration < 0:
            raise self._wrong(name, f"{shown(value)} is negative; write 0s or more")
        return duration

    def memory(self, name: str) -> str:
        """The field's value as text, which must be an amount of memory of 0 or more."""
        return self._amount(name, "memory", "1Gi")

    def cpu(self, name: str) -> str:
        """The field's value as text, which must be an amount of cpu of 0 or more."""
        return self._amount(name, "cpu", "500m")

    def _amount(self, name: str, what: str, example: str) -> str:
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._wrong(name, f'{shown(value)} is no amount of {what}; write it as in "{example}"')
        try:
            amount = parse_quantity(str(value))
        except ValueError as error:
            raise self._wrong(name, str(error)) from None
        if amount < 0:
            raise self._wrong(name, f'"{value}" is negative; an amount of {what} is 0 or more')
        return str(value)

    def key(self) -> str:
        """`namespace/name` of the fields of these names; without a namespace, it is `default`."""
        return f"{self.text('namespace', 'default')}/{self.text('name')}"

    def fields(self, name: str) -> Fields:
        """The field's value, which must be an object."""
        value, path = self.take(name), field_path(self.path, name)
        if not isinstance(value, dict):
            raise InputError(f"{shown(value)} is not an object", path=path)
        return Fields(value, path)

    def rest(self) -> dict[str, Any]:
        """All fields that nobody has taken, for one who reads them himself."""
        left, self._left = self._left, {}
        return left

    def list_of_objects(self, name: str) -> list[tuple[dict[str, Any], str]]:
        """The field's objects, each with its path; none for a field that is not there."""
        items, path = self.take(name, []), field_path(self.path, name)
        if not isinstance(items, list):
            raise InputError(f"{shown(items)} is not a list", path=path)
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                raise InputError(f"{shown(item)} is not an object", path=f"{path}[{index}]")
        return [(item, f"{path}[{index}]") for index, item in enumerate(items)]

    def list_of_fields(self, name: str) -> list[Fields]:
        """The fields of each of the field's objects."""
        return [Fields(item, path) for item, path in self.list_of_objects(name)]

    def refuse_others(self) -> None:
        """Refuse what nobody has taken."""
        for name in self._left:
            raise InputError("is not a known field", path=field_path(self.path, name))

    def _wrong(self, name: str, problem: str) -> InputError:
        return InputError(problem, path=field_path(self.path, name))
