"""The shapes of values for field ownership: which values are atomic, and which have parts.

Most shapes follow from the schemas (`podium.api.schemas`): objects have fields, lists with a merge key for strategic
merge patch have items with that key, and all other lists are atomic. This module has the exceptions for server-side
apply, as in the listType, listMapKey and mapType markers of k8s.io/api v0.36 (client-go, applyconfigurations).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Literal

from podium.api.schemas.schema import Field, ListOf, MapOf, Object, Type, fields_of, is_atomic
from podium.api.structural.structural import TYPE_FIELDS, Structural


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The shape of a value.

    `one` is atomic. A `map` has named `fields`, and values of shape `value` under other keys. The items of a `list` are
    identified by `keys`, with `defaults` for those that an item omits; those of a `set` by their values.
    """

    form: Literal["one", "map", "list", "set"]
    fields: Mapping[str, Shape] = field(default_factory=dict)
    value: Shape | None = None
    item: Shape | None = None
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)


ONE = Shape("one")
SET = Shape("set", item=ONE)

_DEFAULTS = {"protocol": "TCP"}


ANYTHING = Shape("map")
"""The shape of objects without a schema: any keys, with values of any shape."""


@cache
def shape_of_type(name: str) -> Shape:
    """Return the shape of a built-in type. Raises KeyError for an unknown type."""
    return ONE if is_atomic(name) else _granular(name)


def _granular(name: str) -> Shape:
    return Shape("map", fields={key: _of_field(of) for key, of in fields_of(name).items()})


def _of_field(of: Field) -> Shape:
    if of.is_atomic:
        return ONE
    if of.is_atomic is False and isinstance(of.type, Object):
        return _granular(of.type.name)
    if not isinstance(of.type, ListOf):
        return _of(of.type)
    if of.list_keys is None:
        return ONE
    return _list(of.type.item, of.list_keys) if of.list_keys else SET


def _list(item: Type, keys: tuple[str, ...]) -> Shape:
    defaults = {key: _DEFAULTS[key] for key in keys if key in _DEFAULTS}
    return Shape("list", item=_of(item), keys=keys, defaults=defaults)


def _of(type_: Type) -> Shape:
    match type_:
        case Object(name):
            return shape_of_type(name)
        case MapOf(value):
            return Shape("map", value=_of(value))
        case _:
            return ONE if isinstance(type_, ListOf) or type_.type != "any" else ANYTHING


@lru_cache(maxsize=256)
def shape_of_structural(node: Structural) -> Shape:
    """Return the shape of the objects of a custom kind."""
    fields = {name: _of_node(inner) for name, inner in node.properties.items() if name not in TYPE_FIELDS}
    metadata = {"apiVersion": ONE, "kind": ONE, "metadata": shape_of_type("ObjectMeta")}
    return Shape("map", fields={**fields, **metadata}, value=_values(node))


def _of_node(node: Structural) -> Shape:
    if node.type == "array":
        if node.list_type == "atomic" or node.items is None:
            return ONE
        if node.list_type == "set":
            return SET
        defaults = {key: node.items.properties[key].said.get("default") for key in node.list_keys}
        told = {key: value for key, value in defaults.items() if value is not None}
        return Shape("list", item=_of_node(node.items), keys=node.list_keys, defaults=told)
    if node.is_atomic_map:
        return ONE
    if node.type == "object" or node.properties or node.keeps_unknown:
        fields = {name: _of_node(inner) for name, inner in node.properties.items()}
        return Shape("map", fields=fields, value=_values(node))
    return ONE


def _values(node: Structural) -> Shape | None:
    return None if node.values is None or node.values.keeps_unknown else _of_node(node.values)
