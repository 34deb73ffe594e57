"""Plain values that a program gives, as they would stand in a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from podium.api.errors import InputError, shown
from podium.api.input.codec import Document, load_text

_NULL = "null"


def in_one_line(value: Any, source: str = "") -> str:
    """The value as JSON. Raises InputError for what JSON has no words for, such as a number that is none."""
    try:
        text = msgspec.json.encode(value).decode()
        # Where a number is none, `null` is written, which would stand for no value at all.
        if _NULL in text and not _has_numbers(value):
            raise ValueError("a number in it is not finite")
        return text
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"is no plain JSON: {error}", source=source) from None


def _has_numbers(value: Any) -> bool:
    """Whether all numbers in it are such."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_has_numbers, value.values()))
    return not isinstance(value, list | tuple) or all(map(_has_numbers, value))


def as_document(given: dict[str, Any], source: str) -> Document:
    """The dictionary as a file would be read, so that the same mistakes are found. Raises InputError."""
    documents = load_text(in_one_line(given, source), source)
    if len(documents) != 1:
        raise InputError(f"holds {len(documents)} objects; one configuration is needed", source=source)
    return documents[0]


def assignments_of(fields: Mapping[str, Any]) -> list[str]:
    """What `podium plan set` would be told: `replicas=5` to set a field, `replicas-` for None, to take one away.

    Raises InputError for what is no mapping, and for values that JSON has no words for.
    """
    if not isinstance(fields, Mapping):
        raise InputError(f"fields: {shown(fields)} is no mapping of fields to values, such as {{'replicas': 5}}")
    return [
        f"{name}-" if value is None else f"{name}={value if isinstance(value, str) else in_one_line(value, name)}"
        for name, value in fields.items()
    ]
