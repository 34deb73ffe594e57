"""Structural checks of an object's wire form against its schema: unknown fields, and values of a wrong type.

The typed reading covers only what Podium needs; this covers everything, since controllers also read and pass on the
wire form. A wrong type is always an error for kube-apiserver; an unknown field only with strict validation. Quantities
are normalized to text, as kube-apiserver returns them even if they are written as numbers: clients with strict types
accept nothing else. Source: apimachinery (pkg/api/resource/quantity.go, UnmarshalJSON and MarshalJSON).
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import msgspec

from podium.api.errors import field_path, likely, shown
from podium.api.kinds import SERVED_KINDS, group_of
from podium.api.meta import Int32, Int64, Raw
from podium.api.quantity import PLAIN_QUANTITY, parse_quantity
from podium.api.schemas.schema import Leaf, ListOf, MapOf, Object, Type, fields_of, other_form_of, schema_of
from podium.api.times import PLAIN_TIME, parse_time


def bytes_of(text: str) -> bytes:
    """Return the bytes of a text in base64. Line breaks within the text are ignored (encoding/base64).

    Raises ValueError for invalid base64, without quoting the text: it may be secret.
    """
    try:
        return b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except ValueError:
        raise ValueError("the text is not in base64") from None


# The groups in which versions differ in the type of a field.
_RESHAPED = ("resource.k8s.io",)

_Parser = Callable[[Any], object]
_TIME = Annotated[str, msgspec.Meta(pattern=PLAIN_TIME)]
_QUANTITIES = Annotated[str, msgspec.Meta(pattern=PLAIN_QUANTITY)] | Int64
# By type: with which type msgspec recognizes its usual values, its name in messages, and its complete parser.
_LEAVES: dict[str, tuple[Any, str, _Parser | None]] = {
    "any": (Any, "", None),
    "bool": (bool, "true or false", None),
    "bytes": (bytes, "text in base64", bytes_of),
    "float": (float, "a number", None),
    "int": (Int32, "a whole number of 32 bits", None),
    "intOrString": (int | str, "a whole number or text", None),
    "long": (Int64, "a whole number of 64 bits", None),
    "microtime": (_TIME, "a time such as 2026-01-31T09:30:00.000000Z", parse_time),
    "quantity": (_QUANTITIES, 'an amount such as 2 or "500m"', parse_quantity),
    "str": (str, "text", None),
    "time": (_TIME, "a time such as 2026-01-31T09:30:00Z", parse_time),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem at a path; `is_unknown` means that the field itself is unknown."""

    path: str
    message: str
    is_unknown: bool


def findings(raw: Raw, *, advises: bool = True) -> list[Finding]:
    """Return all deviations from the schema of the object's kind, in the object's order; none for unknown kinds.

    With `advises`, an unknown field comes with the probably intended one, which is expensive to find.

    If the object's version differs from the schema's and has no schema, unknown fields are accepted; known ones must
    have the same types.
    """
    version, kind = raw["apiVersion"], raw["kind"]
    group = group_of(version)
    other = other_form_of(version, kind)
    schema = other or schema_of(group, kind)
    is_other = other is None and schema is not None and version != SERVED_KINDS[group, kind].api_version
    if schema is None or (is_other and group in _RESHAPED) or fits(raw, schema):
        return []
    return [finding for finding in _wrong(raw, schema, "", advises) if not (is_other and finding.is_unknown)]


def without_unknown(raw: Raw) -> Raw:
    """Return the object without fields that are not in its schema; the object itself if there are none.

    An object of a kind or version without a known schema is returned unchanged.
    """
    group = group_of(raw["apiVersion"])
    kind = SERVED_KINDS.get((group, raw["kind"]))
    schema = schema_of(group, raw["kind"]) if kind is not None and kind.api_version == raw["apiVersion"] else None
    return raw if schema is None or fits(raw, schema) else _pruned(raw, schema)


def _parts(value: Any, type_: Type) -> list[tuple[Any, Any, Type | None]] | None:
    """Return the parts of a list or an object by key, with their types, None for unknown fields; None for others."""
    match type_:
        case ListOf(item) if isinstance(value, list):
            return [(index, part, item) for index, part in enumerate(value)]
        case MapOf(item) if isinstance(value, dict):
            return [(key, part, item) for key, part in value.items()]
        case Object(name) if isinstance(value, dict):
            fields = fields_of(name)
            return [(key, part, fields[key].type if key in fields else None) for key, part in value.items()]
    return None


def _pruned(value: Any, type_: Type) -> Any:
    parts = _parts(value, type_)
    if parts is None:
        return value
    kept = {key: _pruned(part, of) for key, part, of in parts if of is not None}
    return list(kept.values()) if isinstance(value, list) else kept


def fits(value: Any, type_: Type) -> bool:
    """Return whether the value is certainly valid, by a cheap test that most values pass."""
    try:
        msgspec.convert(value, _python_type(type_))
    except msgspec.ValidationError:
        return False
    return True


@cache
def _python_type(type_: Type) -> Any:
    """Return the type with which msgspec accepts exactly the valid values."""
    match type_:
        case Leaf(name):
            return _LEAVES[name][0]
        case ListOf(item):
            return list[_python_type(item)]  # type: ignore[misc]
        case MapOf(value):
            return dict[str, _python_type(value)]  # type: ignore[misc]
        case Object(name):
            fields = [(field, _python_type(one.type), None) for field, one in fields_of(name).items()]
            return msgspec.defstruct(name, fields, forbid_unknown_fields=True, gc=False)


def _wrong(value: Any, type_: Type, path: str, advises: bool) -> Iterator[Finding]:
    """Yield the problems of a value that does not fit its type."""
    parts = _parts(value, type_)
    if parts is None:
        problem = _problem(value, type_)
        if problem:
            yield Finding(path, problem, is_unknown=False)
        return
    for key, part, of in parts:
        place = f"{path}[{key}]" if isinstance(key, int) else field_path(path, key)
        if of is None:
            near = likely(key, fields_of(type_.name)) if advises and isinstance(type_, Object) else []
            advice = f"; did you mean {' or '.join(near)}?" if near else ""
            yield Finding(place, f"there is no such field{advice}", is_unknown=True)
        elif not fits(part, of):
            yield from _wrong(part, of, place, advises)


def _problem(value: Any, type_: Type) -> str:
    """Return the problem of a value that does not fit its type; "" if it is valid in an unusual notation."""
    if not isinstance(type_, Leaf):
        return f"{shown(value)} is not {'a list' if isinstance(type_, ListOf) else 'an object'}"
    name = type_.type
    _, words, parse = _LEAVES[name]
    if parse is not None and (isinstance(value, str) or (name == "quantity" and isinstance(value, int | float))):
        try:
            parse(value)
        except ValueError as error:
            return str(error)
        return ""
    advice = "; put it in quotes" if name == "str" and isinstance(value, bool | int | float) else ""
    return f"{shown(value)} is not {words}{advice}"


_QUANTITY = Leaf("quantity")
_UNITS = ((10**9, ""), (10**6, "m"), (10**3, "u"), (1, "n"))


def write_out_amounts(value: Any, type_: Type) -> None:
    """Convert numbers that are quantities to text, within a value of a type; the value is changed in place."""
    places: Iterable[tuple[Any, Type]] = ()
    match type_:
        case Object(name) if type(value) is dict:
            places = [place for place in _fields_with_amounts(name) if place[0] in value]
        case MapOf(inner) if type(value) is dict:
            places = dict.fromkeys(value, inner).items()
        case ListOf(inner) if type(value) is list:
            places = enumerate([inner] * len(value))
    for key, of in places:
        part = value[key]
        # The only single values here are quantities.
        if type(of) is not Leaf:
            write_out_amounts(part, of)
        elif type(part) is int or type(part) is float:
            # Validation reports an invalid number.
            with suppress(ValueError):
                nano = parse_quantity(part)
                value[key] = next(f"{nano // size}{unit}" for size, unit in _UNITS if nano % size == 0)


@cache
def _fields_with_amounts(name: str, within: frozenset[str] = frozenset()) -> tuple[tuple[str, Type], ...]:
    """Return the fields of a type that may contain quantities at any depth; `within` types are being visited."""
    found = []
    for field_name, field in fields_of(name).items() if name not in within else ():
        inner = field.type
        while isinstance(inner, ListOf | MapOf):
            inner = inner.item if isinstance(inner, ListOf) else inner.value
        if inner == _QUANTITY or (isinstance(inner, Object) and _fields_with_amounts(inner.name, within | {name})):
            found.append((field_name, field.type))
    return tuple(found)
