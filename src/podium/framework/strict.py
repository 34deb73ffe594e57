"""Strict reading of what a person configured: every field must be known and of its type.

Source of the rule: the strict decoding of pkg/scheduler/apis/config/scheme.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, cast

import msgspec
from msgspec import inspect

from podium.api.errors import InputError, shown
from podium.api.reading import read

T = TypeVar("T")

_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[[^]]*\]")


class Strict(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The base of configuration structs: immutable, camelCase on the wire, unknown fields refused."""


def read_strictly(raw: Mapping[str, Any], type_: type[T]) -> T:
    """A document of dicts, lists and scalars, without nulls, as a value of ``type_``.

    Raises InputError with the field's path, what is wrong with it and what would be right.
    """
    try:
        value: T = read(dict(raw), cast("Any", type_))
    except InputError as error:
        unknown = _UNKNOWN_FIELD.fullmatch(error.problem)
        if unknown is None:
            raise
        raise InputError(
            f"there is no field {shown(unknown[1])}; {suggestion(unknown[1], _fields_at(type_, error.path))}",
            path=error.path,
        ) from None
    return value


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to try instead of a name that is none of those known."""
    names = list(known)
    # The time to compare grows with the square of the length, and no name is longer than this.
    near = get_close_matches(name[:100], names)
    return f"did you mean {' or '.join(near)}?" if near else f"known are: {', '.join(names) or 'none'}"


def _fields_at(type_: type[Any], path: str) -> list[str]:
    """The fields of the struct that a path leads to, such as ``.profiles[0].plugins``."""
    found: Any = inspect.type_info(type_)
    for step in _STEP.finditer(path):
        found = _beside_null(found)
        if isinstance(found, inspect.DictType):
            found = found.value_type
        elif step[1] is None:
            found = found.item_type
        else:
            found = next(field.type for field in found.fields if field.encode_name == step[1])
    return [field.encode_name for field in _beside_null(found).fields]


def _beside_null(found: Any) -> Any:
    """The type of an optional field."""
    if isinstance(found, inspect.UnionType):
        return next(one for one in found.types if not isinstance(one, inspect.NoneType))
    return found
