"""What somebody has written into a form, read as what its fields hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from podium.api.errors import InputError, shown
from podium.api.times import parse_duration
from podium.app.serving.page.forms import Field, Form

if TYPE_CHECKING:
    from podium.api.input.codec import Document
    from podium.api.meta import Raw

_LARGEST = 1_000_000
_TRUE_OR_FALSE = (True, False, "", None)


class Values:
    """The fields of a form with what was written into them; of what is left empty, nothing."""

    def __init__(self, form: Form, given: Any) -> None:
        """Raises InputError for what is no field of the form, for one of another type, and for one that is missing."""
        if not isinstance(given, Mapping):
            raise InputError("the values of a form are an object", path=".values")
        self._form = form
        fields = {field.name: field for field in (*form.fields, *form.rest)}
        for name, value in given.items():
            if name not in fields:
                raise InputError(f"{form.name} has no field {shown(name)}; it has {', '.join(fields)}", path=".values")
            _check(fields[name], value)
        self._given = {name: value for name, value in given.items() if value not in ("", None, False)}
        for field in fields.values():
            if field.is_required and field.name not in self._given:
                raise InputError(f"{form.name} needs to know: {field.title}", path=f".values.{field.name}")

    def text(self, name: str) -> str:
        """A line, without spaces around it."""
        return str(self._given.get(name, "")).strip()

    def names(self, name: str) -> list[str]:
        """Names with spaces, commas or lines' ends between them."""
        return self.text(name).replace(",", " ").split()

    def lines(self, name: str) -> list[str]:
        """The lines that have something in them."""
        return [line.strip() for line in self.text(name).splitlines() if line.strip()]

    def flag(self, name: str) -> bool:
        """Whether it is to be so."""
        return bool(self._given.get(name))

    def whole(self, name: str, least: int = 0) -> int | None:
        """A number; None for none. Raises InputError."""
        text = self.text(name)
        if not text:
            return None
        if not text.isascii() or not text.isdecimal() or not least <= int(text[:20]) <= _LARGEST:
            raise self._wrong(name, f"{shown(text)} is no number from {least} to {_LARGEST:,}")
        return int(text)

    def duration_ns(self, name: str) -> int | None:
        """A duration in nanoseconds; None for none. Raises InputError."""
        text = self.text(name)
        if not text:
            return None
        try:
            found = parse_duration(text)
        except ValueError as error:
            raise self._wrong(name, str(error)) from None
        if found < 0:
            raise self._wrong(name, f"{shown(text)} is negative; write 0s or more")
        return found

    def documents(self, name: str) -> list[Document]:
        """The objects of a text in YAML or JSON, none for no text. Raises InputError."""
        from podium.api.input.codec import load_text

        text = self.text(name)
        return load_text(text, self._title(name)) if text else []

    def parts(self, name: str) -> list[Raw]:
        """The documents of a text in YAML or JSON that are no whole objects, such as patches. Raises InputError."""
        from podium.api.input import yaml

        found = []
        for index, document in yaml.parse_documents(self.text(name)) if self.text(name) else ():
            if not isinstance(document, dict):
                raise InputError("is not an object", source=self._title(name), document=index)
            found.append(document)
        return found

    def _title(self, name: str) -> str:
        return next(field.title for field in (*self._form.fields, *self._form.rest) if field.name == name)

    def _wrong(self, name: str, problem: str) -> InputError:
        return InputError(f"{self._title(name)}: {problem}", path=f".values.{name}")


def _check(field: Field, value: Any) -> None:
    """Raise InputError for a value of another type than the field's."""
    if field.kind == "flag":
        if value not in _TRUE_OR_FALSE or isinstance(value, int) is not isinstance(value, bool):
            raise InputError(f"{field.title}: is neither true nor false", path=f".values.{field.name}")
    elif not isinstance(value, str) and value is not None:
        raise InputError(f"{field.title}: is no text", path=f".values.{field.name}")
    elif field.kind == "choice" and value and value not in field.choices:
        raise InputError(
            f"{field.title}: {shown(value)} is none of {', '.join(field.choices)}", path=f".values.{field.name}"
        )
