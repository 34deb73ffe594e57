"""Strict reading of what a person configured: every field must be known and of its type.

Source of the rule: the strict decoding of pkg/scheduler/apis/config/scheme.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from podium.api.reading import read

T = TypeVar("T")


class Strict(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The base of configuration structs: immutable, camelCase on the wire, unknown fields refused."""


def read_strictly(raw: Mapping[str, Any], type_: type[T]) -> T:
    """A document of dicts, lists and scalars, without nulls, as a value of ``type_``.

    Raises InputError with the field's path, what is wrong with it and what would be right.
    """
    value: T = read(dict(raw), cast("Any", type_))
    return value
