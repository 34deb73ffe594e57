"""The normalization of quantities to text, as kube-apiserver returns them even if they are written as numbers.

Source: apimachinery (pkg/api/resource/quantity.go, UnmarshalJSON and MarshalJSON). Clients with strict types accept
nothing else.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from podium.api.quantity import parse_quantity
from podium.api.schemas.schema import Leaf, ListOf, MapOf, Object, Type, fields_of

_QUANTITY = Leaf("quantity")
_UNITS = ((10**9, ""), (10**6, "m"), (10**3, "u"), (1, "n"))


def write_out_amounts(value: Any, type_: Type) -> None:
    """Convert numbers that are quantities to text, within a value of a type; the value is changed in place."""
    match type_:
        case Object(name) if type(value) is dict:
            for field, inner in _fields_with_amounts(name):
                if field in value:
                    _write_out(value, field, inner)
        case MapOf(inner) if type(value) is dict:
            for key in value:
                _write_out(value, key, inner)
        case ListOf(inner) if type(value) is list:
            for index in range(len(value)):
                _write_out(value, index, inner)


def _write_out(collection: Any, key: Any, type_: Type) -> None:
    value = collection[key]
    if type_ != _QUANTITY:
        write_out_amounts(value, type_)
    elif type(value) is int or type(value) is float:
        collection[key] = _in_text(value)


def _in_text(number: float) -> int | float | str:
    """Return the number as a quantity; an invalid one is returned unchanged, for validation to report."""
    try:
        nano = parse_quantity(number)
    except ValueError:
        return number
    return next(f"{nano // size}{unit}" for size, unit in _UNITS if nano % size == 0)


@cache
def _fields_with_amounts(name: str) -> tuple[tuple[str, Type], ...]:
    """Return the fields of a type that may contain quantities at any depth."""
    return tuple(
        (field_name, field.type)
        for field_name, field in fields_of(name).items()
        if _has_amounts(field.type, frozenset())
    )


def _has_amounts(type_: Type, within: frozenset[str]) -> bool:
    """Return whether a value of the type may contain quantities; types in `within` are being visited already."""
    match type_:
        case Object(name):
            if name in within:
                return False
            inner = within | {name}
            return any(_has_amounts(field.type, inner) for field in fields_of(name).values())
        case ListOf(inner_type) | MapOf(inner_type):
            return _has_amounts(inner_type, within)
    return type_ == _QUANTITY
