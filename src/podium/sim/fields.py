"""Strict reading of an object's fields: each is taken once, and none may be left over."""

from __future__ import annotations

from typing import Any

from podium.api.errors import InputError, field_path, shown

_REQUIRED = object()


class Fields:
    """The fields of one object at `path`. Everything raises InputError with the path of the field."""

    def __init__(self, raw: dict[str, Any], path: str) -> None:
        self._left = dict(raw)
        self.path = path

    def has(self, name: str) -> bool:
        """Whether a field is there and not taken yet."""
        return name in self._left

    def take(self, name: str, default: Any = _REQUIRED) -> Any:
        """The field's value, whatever it is."""
        if name not in self._left and default is _REQUIRED:
            raise InputError("is missing, and must be given", path=field_path(self.path, name))
        return self._left.pop(name, default)

    def text(self, name: str) -> str:
        """The field's value, which must be text that is not empty."""
        value = self.take(name)
        if not isinstance(value, str) or not value:
            raise InputError(f"{shown(value)} is not text", path=field_path(self.path, name))
        return value

    def fields(self, name: str) -> Fields:
        """The field's value, which must be an object."""
        value, path = self.take(name), field_path(self.path, name)
        if not isinstance(value, dict):
            raise InputError(f"{shown(value)} is not an object", path=path)
        return Fields(value, path)

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
