"""Kubernetes' objects as JSON Schemas, out of the fields that Podium knows of them (`podium.api.schemas`)."""

from __future__ import annotations

from podium.api.kinds import KINDS
from podium.api.schemas.schema import Fields, Leaf, ListOf, MapOf, Object, Type, fields_of, is_type
from podium.app.schemas.tables import Schema, reference

_TEXT_OR_NUMBER: Schema = {"type": ["string", "number"]}
_LEAVES: dict[str, Schema] = {
    "any": {},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string"},
    "float": {"type": "number"},
    "int": {"type": "integer"},
    "long": {"type": "integer"},
    "quantity": _TEXT_OR_NUMBER,
    "share": _TEXT_OR_NUMBER,
    "str": {"type": "string"},
    "time": {"type": "string"},
}


def kinds() -> list[str]:
    """The kinds that a scenario may apply whose fields are known, by name."""
    return sorted({kind.name for kind in KINDS.values() if is_type(kind.name)})


def object_schemas() -> dict[str, Schema]:
    """The types of all those kinds, and of what is in them, each by its name. A field may be null, as in manifests."""
    found: dict[str, Schema] = {}
    waiting = kinds()
    versions = {kind.name: kind.api_version for kind in KINDS.values()}
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        fields = fields_of(name)
        found[name] = _object(fields)
        if name in versions and "kind" in fields:
            found[name]["required"] = ["apiVersion", "kind"]
            found[name]["properties"] |= {"kind": {"const": name}, "apiVersion": {"type": "string"}}
        waiting += [type_ for field in fields.values() for type_ in _named(field.type)]
    return found


def _object(fields: Fields) -> Schema:
    properties = {name: _schema(field.type) for name, field in fields.items()}
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def _schema(type_: Type) -> Schema:
    match type_:
        case Leaf():
            leaf = _LEAVES[type_.type]
            return {"type": _with_null(leaf["type"])} if leaf else {}
        case ListOf():
            return {"type": ["array", "null"], "items": _schema(type_.item)}
        case MapOf():
            return {"type": ["object", "null"], "additionalProperties": _schema(type_.value)}
        case Object():
            return reference(type_.name)


def _with_null(types: str | list[str]) -> list[str]:
    return [*([types] if isinstance(types, str) else types), "null"]


def _named(type_: Type) -> list[str]:
    """The types of objects in a type."""
    match type_:
        case ListOf():
            return _named(type_.item)
        case MapOf():
            return _named(type_.value)
        case Object():
            return [type_.name]
    return []
