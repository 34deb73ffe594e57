"""A way through an object that nobody has read yet, on which what is wrong is reported.

Rules walk the wire form, since kube-apiserver looks at many fields that Podium does not read. Every field can hold
anything: what is not of its type is reported once, and counts as not given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from podium.api.errors import field_path
from podium.api.validation import finding
from podium.api.validation.finding import MAX_FINDINGS, Finding

_EMPTY: Mapping[str, Any] = {}


class Place:
    """A value in an object: its fields by type, and reports about them.

    `name` is that of a field of the value, or "" for the value itself. The path is put together when it is needed.
    """

    __slots__ = ("_findings", "_key", "_parent", "value")

    def __init__(self, value: Any, findings: list[Finding], parent: Place | None = None, key: str | int = "") -> None:
        self.value = value
        self._findings = findings
        self._parent = parent
        self._key = key

    def path(self, name: str = "") -> str:
        """The path of the value, or of a field of it."""
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

    def has(self, name: str) -> bool:
        """Whether the field is given at all."""
        return name in self.value

    def text(self, name: str, default: str = "") -> str:
        """The text of the field; `default` where it is not given, or empty."""
        value = self.value.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, str):
            return value
        self._mistyped(name, value, "text")
        return default

    def number(self, name: str) -> int | None:
        """The whole number of the field; None where it is not given."""
        value = self.value.get(name)
        if value is None or type(value) is int:
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        self._mistyped(name, value, "a whole number")
        return None

    def flag(self, name: str) -> bool:
        """Whether the field is true."""
        value = self.value.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        self._mistyped(name, value, "true or false")
        return False

    def child(self, name: str) -> Place | None:
        """The object in the field; None where it is not given."""
        value = self.value.get(name)
        if value is None:
            return None
        if isinstance(value, dict):
            return Place(value, self._findings, self, name)
        self._mistyped(name, value, "an object")
        return None

    def child_or_empty(self, name: str) -> Place:
        """The object in the field; an empty one where it is not given."""
        return self.child(name) or Place(_EMPTY, self._findings, self, name)

    def entries(self, name: str) -> list[Place]:
        """The entries of the list in the field, of whatever type."""
        value = self.value.get(name)
        if not value and value is not False and value != 0:
            return []
        if not isinstance(value, list | tuple):
            self._mistyped(name, value, "a list")
            return []
        place = Place(value, self._findings, self, name)
        return [Place(item, self._findings, place, index) for index, item in enumerate(value)]

    def objects(self, name: str) -> list[Place]:
        """The objects of the list in the field."""
        if not self.value.get(name):
            return []
        return [entry for entry in self.entries(name) if entry._is(dict, "an object")]

    def texts(self, name: str) -> list[Place]:
        """The texts of the list in the field."""
        if not self.value.get(name):
            return []
        return [entry for entry in self.entries(name) if entry._is(str, "text")]

    def mapping(self, name: str) -> list[tuple[str, Place]]:
        """The entries of the object in the field, each with its key."""
        place = self.child(name) if self.value.get(name) else None
        return (
            []
            if place is None
            else [(key, Place(inner, self._findings, place, key)) for key, inner in place.value.items()]
        )

    def text_mapping(self, name: str) -> dict[str, str]:
        """The texts of the object in the field, by key."""
        if not self.value.get(name):
            return {}
        return {key: inner.value for key, inner in self.mapping(name) if inner._is(str, "text")}

    def report(self, found: Finding) -> None:
        """Add a finding."""
        if len(self._findings) < MAX_FINDINGS:
            self._findings.append(found)

    def required(self, name: str, detail: str = "") -> None:
        """The field must be given."""
        self.report(finding.required(self.path(name), detail))

    def require(self, *names: str) -> None:
        """Each of the fields must be given, and not be empty."""
        for name in names:
            if not self.value.get(name):
                self.required(name)

    def invalid(self, name: str, value: object, detail: str) -> None:
        """The field's value breaks a rule."""
        self.report(finding.invalid(self.path(name), value, detail))

    def check(self, name: str, problem: str | None) -> None:
        """The field's value has a problem that names it, if it has one."""
        if problem is not None:
            self.report(Finding(self.path(name), "FieldValueInvalid", f"Invalid value: {problem}"))

    def duplicate(self, name: str, value: object) -> None:
        """The field's value stands elsewhere already."""
        self.report(finding.duplicate(self.path(name), value))

    def forbidden(self, name: str, detail: str) -> None:
        """The field may not be given."""
        self.report(finding.forbidden(self.path(name), detail))

    def not_found(self, name: str, value: object, detail: str = "") -> None:
        """The field names something that is not there."""
        self.report(finding.not_found(self.path(name), value, detail))

    def check_one_of(self, name: str, supported: Iterable[str]) -> None:
        """The field is not given, or has one of these texts."""
        value = self.text(name)
        if value and value not in supported:
            self.report(finding.unsupported(self.path(name), value, supported))

    def check_not_negative(self, *names: str) -> None:
        """None of these fields is a negative number."""
        for name in names:
            number = self.number(name)
            if number is not None and number < 0:
                self.invalid(name, number, "must be greater than or equal to 0")

    def check_range(self, name: str, least: int, most: int) -> None:
        """The field is not given, or a number from `least` to `most`."""
        number = self.number(name)
        if number is not None and not least <= number <= most:
            self.invalid(name, number, f"must be between {least} and {most}, inclusive")

    def _is(self, type_: type, expected: str) -> bool:
        if isinstance(self.value, type_):
            return True
        self.invalid("", self.value, f"must be {expected}")
        return False

    def _mistyped(self, name: str, value: object, expected: str) -> None:
        self.invalid(name, value, f"must be {expected}")
