"""The schemas of all kinds that are served: Kubernetes' own, and those that custom kinds bring along.

A custom kind's is the structural schema of its definition (apiextensions/v1, `openAPIV3Schema`). It becomes the same
types as stand in `podium.api.schemas`, so that whoever walks them need not know where they come from.
"""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw
from podium.api.schemas.schema import Field, Fields, Leaf, ListOf, MapOf, Object, Type, fields_of, is_type, schema_of

_ANY = Leaf("any")
_LEAVES = {"boolean": "bool", "number": "float", "string": "str"}
_METADATA = {"apiVersion": Field(Leaf("str")), "kind": Field(Leaf("str")), "metadata": Field(Object("ObjectMeta"))}


class SchemaRegistry:
    """Finds the fields of every kind: what belongs in them, what they are by default, and how lists are merged."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], Object] = {}
        # The fields of the objects in custom kinds, each by a name that its path makes.
        self._fields: dict[str, Fields] = {}

    def add(self, group: str, kind: str, schema: Raw) -> None:
        """Let a custom kind join, or take the place of what it was before. Raises ValueError for one of Kubernetes'."""
        if schema_of(group, kind) is not None:
            raise ValueError(f"the fields of {kind} are those of Kubernetes")
        self.remove(group, kind)
        name = f"{kind}.{group}"
        self._kinds[group, kind] = Object(name)
        own = {field: self._field(one, f"{name}.{field}") for field, one in schema.get("properties", {}).items()}
        self._fields[name] = {**own, **_METADATA}

    def remove(self, group: str, kind: str) -> None:
        """Forget the fields of a custom kind, if they are known."""
        self._kinds.pop((group, kind), None)
        name = f"{kind}.{group}"
        for known in [path for path in self._fields if path == name or path.startswith(f"{name}.")]:
            del self._fields[known]

    def of(self, group: str, kind: str) -> Object | None:
        """The type of a kind's objects; None where nothing is known of it."""
        return self._kinds.get((group, kind)) or schema_of(group, kind)

    def fields(self, type_: Object) -> Fields:
        """The fields of a type. Raises KeyError for one that there is not."""
        return fields_of(type_.name) if is_type(type_.name) else self._fields[type_.name]

    def defaulted(self, raw: Raw, type_: Object) -> Raw:
        """The object with its defaults where it says nothing, and within what it says; itself where there are none."""
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
        """What an OpenAPI schema says of a field; `name` is its path."""
        keys = schema.get("x-kubernetes-list-map-keys", ())
        is_set = schema.get("x-kubernetes-list-type") == "set"
        return Field(
            self._type(schema, name),
            # Items that several fields tell apart are for server-side apply alone.
            "" if is_set else keys[0] if len(keys) == 1 else None,
            schema.get("x-kubernetes-map-type") == "atomic",
            default=schema.get("default"),
        )

    def _type(self, schema: Raw, name: str) -> Type:
        if schema.get("x-kubernetes-int-or-string"):
            return Leaf("share")
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
        """An object with the fields that it says, or with whatever keys."""
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            return MapOf(self._type(values, f"{name}{{}}"))
        if "properties" not in schema or schema.get("x-kubernetes-preserve-unknown-fields"):
            return MapOf(_ANY) if "properties" not in schema else _ANY
        self._fields[name] = {field: self._field(one, f"{name}.{field}") for field, one in schema["properties"].items()}
        return Object(name)
