"""What is wrong with an object, in the words of kube-apiserver.

The kinds of problems and their texts are those of apimachinery (pkg/util/validation/field/errors.go); what stands after
them is in our words where upstream quotes a regular expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from podium.api.errors import shown

MAX_FINDINGS = 100
"""How many findings one object can have; what is wrong beyond that is not looked for."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: the path of the field (`.spec.containers[0].image`), the cause as a Status names it, and a text."""

    path: str
    cause: str
    message: str

    def __str__(self) -> str:
        """The finding on one line, as errors give it."""
        return f"{self.path}: {self.message}" if self.path else self.message


def required(path: str, detail: str = "") -> Finding:
    """A field that must be given."""
    return Finding(path, "FieldValueRequired", _with("Required value", detail))


def invalid(path: str, value: object, detail: str) -> Finding:
    """A value that breaks a rule."""
    return Finding(path, "FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}")


def duplicate(path: str, value: object) -> Finding:
    """A value that may stand there once."""
    return Finding(path, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def forbidden(path: str, detail: str) -> Finding:
    """A field that may not be given there."""
    return Finding(path, "FieldValueForbidden", f"Forbidden: {detail}")


def unsupported(path: str, value: object, supported: Iterable[str]) -> Finding:
    """A value that is not in the list of those that there are."""
    known = ", ".join(shown(value) for value in supported)
    return Finding(path, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {known}")


def not_found(path: str, value: object, detail: str = "") -> Finding:
    """A name of something in the object that is not there."""
    return Finding(path, "FieldValueNotFound", _with(f"Not found: {shown(value)}", detail))


def too_many(path: str, entries: Sequence[object], most: int) -> Finding:
    """A list that is too long."""
    return Finding(path, "FieldValueTooMany", f"Too many: {len(entries)}: must have at most {most} items")


def too_long(path: str, most: int) -> Finding:
    """A text, or several together, that take too many bytes."""
    return Finding(path, "FieldValueTooLong", f"Too long: may not be more than {most} bytes")


def _with(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message
