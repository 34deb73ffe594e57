"""Validation findings, with kube-apiserver's wording, and a cursor over an unvalidated object that collects them.

The types and texts are those of apimachinery (pkg/util/validation/field/errors.go); the details are Podium's own where
upstream quotes a regular expression.

Rules operate on the wire form, since kube-apiserver validates many fields that Podium does not read. Every field can
have any value: a wrong type is reported once, and the field then counts as unset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any, TypeVar

from msgspec import Struct

from podium.api.errors import field_path, shown

Value = TypeVar("Value")

MAX_FINDINGS = 100
"""The maximum number of findings of one object; validation stops there."""

_EMPTY: Mapping[str, Any] = {}


class Finding(Struct, frozen=True):
    """A problem: the path of the field (`.spec.containers[0].image`), the cause as in a Status, and a text."""

    path: str
    cause: str
    message: str

    def __str__(self) -> str:
        """Return the finding on one line, as in errors."""
        return f"{self.path}: {self.message}" if self.path else self.message


def required(path: str, detail: str = "") -> Finding:
    """Return a finding for a missing required field."""
    return Finding(path, "FieldValueRequired", _with("Required value", detail))


def invalid(path: str, value: object, detail: str) -> Finding:
    """Return a finding for a value that breaks a rule."""
    return Finding(path, "FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}")


def duplicate(path: str, value: object) -> Finding:
    """Return a finding for a duplicate value."""
    return Finding(path, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def forbidden(path: str, detail: str) -> Finding:
    """Return a finding for a field that must not be set."""
    return Finding(path, "FieldValueForbidden", f"Forbidden: {detail}")


def unsupported(path: str, value: object, supported: Iterable[str]) -> Finding:
    """Return a finding for a value that is not supported."""
    known = ", ".join(shown(value) for value in supported)
    return Finding(path, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {known}")


def not_found(path: str, value: object, detail: str = "") -> Finding:
    """Return a finding for a reference within the object that does not exist."""
    return Finding(path, "FieldValueNotFound", _with(f"Not found: {shown(value)}", detail))


def too_many(path: str, entries: Sized, most: int) -> Finding:
    """Return a finding for a list or a map with too many entries."""
    return Finding(path, "FieldValueTooMany", f"Too many: {len(entries)}: must have at most {most} items")


def too_long(path: str, most: int) -> Finding:
    """Return a finding for text, single or in total, that takes too many bytes."""
    return Finding(path, "FieldValueTooLong", f"Too long: may not be more than {most} bytes")


def _with(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message


class Findings(list[Finding]):
    """The findings of an object. `context` is data about the whole object that rules need."""

    context: Any = None


class Place(Struct, eq=False):
    """A value in an object: its fields by type, and methods to report findings.

    `name` is that of a field of the value, or "" for the value itself. The path is built on demand.
    """

    value: Any
    findings: Findings
    _parent: Place | None = None
    _key: str | int = ""

    @property
    def context(self) -> Any:
        """The data about the whole object that rules need."""
        return self.findings.context

    def path(self, name: str = "") -> str:
        """Return the path of the value, or of a field of it."""
        keys: list[str | int] = [name] if name else []
        place: Place | None = self
        while place is not None:
            keys.append(place._key)
            place = place._parent
        path = ""
        for key in reversed(keys):
            if isinstance(key, int):
                path = f"{path}[{key}]"
            elif key:
                path = field_path(path, key)
        return path

    @property
    def field(self) -> str:
        """The name of the field that holds the value, or a list with it."""
        place = self._parent if isinstance(self._key, int) and self._parent is not None else self
        return str(place._key)

    @property
    def owner(self) -> Place:
        """The object that has this one in a field. Raises AssertionError for the object as a whole."""
        place = self._parent if self._parent is None or not isinstance(self._key, int) else self._parent._parent
        if place is None:
            raise AssertionError("an object as a whole is in no other")
        return place

    def has(self, name: str) -> bool:
        return name in self.value

    def fields_set(self, *names: str) -> list[str]:
        """Return those of the fields that are set."""
        return [name for name in names if name in self.value]

    def text(self, name: str, default: str = "") -> str:
        """Return the text of the field; `default` if it is unset or empty."""
        return self._typed(name, str, "text") or default

    def number(self, name: str) -> int | None:
        """Return the integer in the field; None if it is unset."""
        value = self.value.get(name)
        if value is None or type(value) is int:
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        self.invalid(name, value, "must be a whole number")
        return None

    def flag(self, name: str) -> bool:
        """Return whether the field is true."""
        return self._typed(name, bool, "true or false") is True

    def child(self, name: str) -> Place | None:
        """Return the object in the field; None if it is unset."""
        value = self._typed(name, dict, "an object")
        return None if value is None else Place(value, self.findings, self, name)

    def _typed(self, name: str, type_: type[Value], expected: str) -> Value | None:
        """Return the value of the field; None if it is unset, or of another type, which is reported."""
        value = self.value.get(name)
        if value is None or isinstance(value, type_):
            return value
        self.invalid(name, value, f"must be {expected}")
        return None

    def child_or_empty(self, *names: str) -> Place:
        """Return the object in the field, or in a field of that, and so on; an empty one if it is unset."""
        place = self
        for name in names:
            place = place.child(name) or Place(_EMPTY, place.findings, place, name)
        return place

    def entries(self, name: str) -> list[Place]:
        """Return the entries of the list in the field, of any type."""
        value = self.value.get(name)
        if not value and value is not False and value != 0:
            return []
        if not isinstance(value, list | tuple):
            self.invalid(name, value, "must be a list")
            return []
        place = Place(value, self.findings, self, name)
        return [Place(item, self.findings, place, index) for index, item in enumerate(value)]

    def objects(self, name: str) -> list[Place]:
        """Return the objects of the list in the field."""
        return [entry for entry in self.entries(name) if entry._is(dict, "an object")]

    def texts(self, name: str) -> list[Place]:
        """Return the strings of the list in the field."""
        return [entry for entry in self.entries(name) if entry._is(str, "text")]

    def mapping(self, name: str) -> list[tuple[str, Place]]:
        """Return the entries of the object in the field, each with its key."""
        place = self.child(name) if self.value.get(name) else None
        values = {} if place is None else place.value
        return [(key, Place(inner, self.findings, place, key)) for key, inner in values.items()]

    def text_mapping(self, name: str) -> dict[str, str]:
        """Return the string values of the object in the field, by key."""
        value = self.value.get(name)
        if not value:
            return {}
        if type(value) is dict and all(type(inner) is str for inner in value.values()):
            return value
        return {key: inner.value for key, inner in self.mapping(name) if inner._is(str, "text")}

    def report(self, found: Finding) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(found)

    def required(self, name: str, detail: str = "") -> None:
        """Report that a required field is missing."""
        self.report(required(self.path(name), detail))

    def require(self, *names: str) -> None:
        """Report each of the fields that is unset or empty."""
        for name in names:
            if not self.value.get(name):
                self.required(name)

    def invalid(self, name: str, value: object, detail: str) -> None:
        """Report that the field's value breaks a rule."""
        self.report(invalid(self.path(name), value, detail))

    def check(self, name: str, problem: str | None) -> None:
        """Report the problem of the field's value, if there is one."""
        if problem is not None:
            self.report(Finding(self.path(name), "FieldValueInvalid", f"Invalid value: {problem}"))

    def duplicate(self, name: str, value: object) -> None:
        """Report that the field's value is a duplicate."""
        self.report(duplicate(self.path(name), value))

    def forbidden(self, name: str, detail: str) -> None:
        """Report that the field must not be set."""
        self.report(forbidden(self.path(name), detail))

    def unsupported(self, name: str, value: object, supported: Iterable[str]) -> None:
        """Report that the field's value is not supported."""
        self.report(unsupported(self.path(name), value, supported))

    def not_found(self, name: str, value: object, detail: str = "") -> None:
        """Report that the field's reference does not exist."""
        self.report(not_found(self.path(name), value, detail))

    def check_number(self, name: str, most: int) -> None:
        """Report the list or object in the field if it has more entries."""
        value = self.value.get(name)
        if isinstance(value, list | tuple | dict) and len(value) > most:
            self.report(too_many(self.path(name), value, most))

    def _is(self, type_: type, expected: str) -> bool:
        if isinstance(self.value, type_):
            return True
        self.invalid("", self.value, f"must be {expected}")
        return False
