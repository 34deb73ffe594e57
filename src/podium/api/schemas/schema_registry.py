"""The schemas of all served kinds: built-in ones and those of custom kinds.

A custom kind's schema is the structural schema of its definition (apiextensions/v1, `openAPIV3Schema`). It is converted
to the same types as in `podium.api.schemas`, so that callers need not distinguish them.
"""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw
from podium.api.schemas.schema import Field, Fields, Leaf, ListOf, MapOf, Object, Type, fields_of, is_type, schema_of

_ANY = Leaf("any")
_LEAVES = {"boolean": "bool", "number": "float", "string": "str"}
_METADATA = {"apiVersion": Field(Leaf("str")), "kind": Field(Leaf("str")), "metadata": Field(Object("ObjectMeta"))}


class SchemaRegistry:
    """A registry of every kind's fields: their types, defaults and merge keys."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], Object] = {}
        # The fields of objects in custom kinds, named by their paths.
        self._fields: dict[str, Fields] = {}

    def add(self, group: str, kind: str, schema: Raw) -> None:
        """Add or replace a custom kind. Raises ValueError for a built-in kind."""
        if schema_of(group, kind) is not None:
            raise ValueError(f"the fields of {kind} are those of Kubernetes")
        self.remove(group, kind)
        name = f"{kind}.{group}"
        self._kinds[group, kind] = Object(name)
        own = {field: self._field(one, f"{name}.{field}") for field, one in schema.get("properties", {}).items()}
        self._fields[name] = {**own, **_METADATA}

    def remove(self, group: str, kind: str) -> None:
        """Remove the fields of a custom kind, if they are known."""
        self._kinds.pop((group, kind), None)
        name = f"{kind}.{group}"
        for known in [path for path in self._fields if path == name or path.startswith(f"{name}.")]:
            del self._fields[known]

    def of(self, group: str, kind: str) -> Object | None:
        """Return the type of a kind's objects; None for an unknown kind."""
        return self._kinds.get((group, kind)) or schema_of(group, kind)

    def fields(self, type_: Object) -> Fields:
        """Return the fields of a type. Raises KeyError for an unknown type."""
        return fields_of(type_.name) if is_type(type_.name) else self._fields[type_.name]

    def defaulted(self, raw: Raw, type_: Object) -> Raw:
        """Return the object with defaults for unset fields at all depths; the object itself if nothing is unset."""
        filled: Raw = self._filled(raw, type_)
        return filled

    def _filled(self, value: Any, type_: Type) -> Any:
        match type_:
            case Object() if isinstance(value, dict):
                return self._filled_object(value, self.fields(type_))
            case MapOf(inner) if isinstance(value, dict):
                filled = {key: self._filled(one, inner) for key, one in value.items()}
                return value if all(filled[key] is one for key, one in value.items()) else filled
            case ListOf(item) if isinstance(value, list):
                items = [self._filled(one, item) for one in value]
                return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value

    def _filled_object(self, value: Raw, fields: Fields) -> Raw:
        changed: Raw = {}
        for name, field in fields.items():
            old = value.get(name)
            new = field.default if old is None else old
            if new is not None:
                new = self._filled(new, field.type)
            if new is not old:
                changed[name] = new
        return {**value, **changed} if changed else value

    def _field(self, schema: Raw, name: str) -> Field:
        """Return the field for an OpenAPI schema; `name` is its path."""
        keys = schema.get("x-kubernetes-list-map-keys", ())
        is_set = schema.get("x-kubernetes-list-type") == "set"
        return Field(
            self._type(schema, name),
            # Lists with several keys matter only for server-side apply.
            "" if is_set else keys[0] if len(keys) == 1 else None,
            strategy="replace" if schema.get("x-kubernetes-map-type") == "atomic" else "",
            default=schema.get("default"),
        )

    def _type(self, schema: Raw, name: str) -> Type:
        if schema.get("x-kubernetes-int-or-string"):
            return Leaf("intOrString")
        match schema.get("type"):
            case "array":
                return ListOf(self._type(schema.get("items", {}), f"{name}[]"))
            case "integer":
                return Leaf("int" if schema.get("format") == "int32" else "long")
            case "object":
                return self._object(schema, name)
            case found:
                return Leaf(_LEAVES[found]) if found in _LEAVES else _ANY

    def _object(self, schema: Raw, name: str) -> Type:
        """Return an object type with its fields, or a map type."""
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            return MapOf(self._type(values, f"{name}{{}}"))
        if "properties" not in schema or schema.get("x-kubernetes-preserve-unknown-fields"):
            return MapOf(_ANY) if "properties" not in schema else _ANY
        self._fields[name] = {field: self._field(one, f"{name}.{field}") for field, one in schema["properties"].items()}
        return Object(name)
