"""Field ownership: the fields of an object as sets, in the format of `managedFields` (FieldsV1), and their merge.

A set is a tree of dictionaries. `f:NAME` is a field, `k:{"name":"x"}` a list item by its keys, `v:"x"` an item of a
set. A leaf node is a field of the set; an inner node is a field itself if it contains `.`. Sets are shared, and never
mutated.

Shapes say which values are atomic, and which have parts. Most follow from the schemas (`podium.api.schemas`): objects
have fields, lists with a merge key for strategic merge patch have items with that key, and all other lists are atomic.
This module has the exceptions for server-side apply, as in the listType, listMapKey and mapType markers of k8s.io/api
v0.36 (client-go, applyconfigurations).

Source: structured-merge-diff (fieldpath: serialize.go, set.go, element.go; typed: tofieldset.go, compare.go, merge.go,
remove.go).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from podium.api.schemas.schema import Field, ListOf, MapOf, Object, Type, fields_of, is_atomic
from podium.api.structural.structural import TYPE_FIELDS, Structural

FieldSet = dict[str, Any]
EMPTY: FieldSet = {}
"""At the top level the empty set; within a set, a field without nested fields."""

SELF = "."
_LEAF: FieldSet = {}


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields in either set."""
    return _union(left, right) if left and right else left or right


def _union(left: FieldSet, right: FieldSet) -> FieldSet:
    if left is right:
        return left
    if not left or not right:
        parts = left or right
        return parts if not parts or SELF in parts else {SELF: _LEAF, **parts}
    found = dict(left)
    for name, inner in right.items():
        found[name] = _union(left[name], inner) if name in left else inner
    return found


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields of the first set that are not in the second; nested fields of removed ones remain."""
    return (_difference(left, right) or EMPTY) if left and right else left


def _difference(left: FieldSet, right: FieldSet) -> FieldSet | None:
    is_field = _is_field(left) and not _is_field(right)
    parts: FieldSet = {}
    for name, inner in left.items():
        if name == SELF:
            continue
        rest = _difference(inner, right[name]) if name in right else inner
        if rest is not None:
            parts[name] = rest
    return _node(is_field, parts)


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields in both sets."""
    return _intersection(left, right, is_root=True) or EMPTY


def _intersection(left: FieldSet, right: FieldSet, *, is_root: bool = False) -> FieldSet | None:
    parts: FieldSet = {}
    for name, inner in left.items():
        if name in right and name != SELF:
            shared = _intersection(inner, right[name])
            if shared is not None:
                parts[name] = shared
    return _node(not is_root and _is_field(left) and _is_field(right), parts)


def with_named_fields(fields: FieldSet, shape: Shape) -> FieldSet:
    """Return the set with the parents of its fields added, if a schema names them."""
    found: FieldSet = {}
    for name, inner in fields.items():
        if name == SELF or not inner:
            found[name] = inner
            continue
        is_field = name.startswith("f:")
        of = (shape.fields.get(name[2:]) or shape.value if is_field else shape.item) or shape
        whole = with_named_fields(inner, of)
        is_named = is_field and name[2:] in shape.fields
        found[name] = {SELF: _LEAF, **whole} if is_named and SELF not in whole else whole
    return found


def paths(fields: FieldSet, path: str = "") -> Iterator[str]:
    """Yield the fields in readable form, such as `.spec.containers[name="main"].image`, in no particular order."""
    for name, inner in fields.items():
        if name != SELF:
            place = path + shown_element(name)
            if _is_field(inner):
                yield place
            yield from paths(inner, place)


def shown_element(name: str) -> str:
    """Return one path element in readable form (PathElement.String)."""
    mark, _, rest = name.partition(":")
    if mark == "f":
        return f".{rest}"
    if mark == "k":
        return f"[{','.join(f'{key}={json.dumps(value)}' for key, value in sorted(json.loads(rest).items()))}]"
    return f"[={rest}]" if mark == "v" else f"[{rest}]"


def is_set(value: Any, depth: int = 0) -> bool:
    """Return whether the value is a well-formed field set."""
    if not isinstance(value, dict) or depth > 64:
        return False
    return all(_is_element(name) and is_set(inner, depth + 1) for name, inner in value.items())


def _is_element(name: str) -> bool:
    mark, _, rest = name.partition(":")
    if mark in ("f", SELF):
        return True
    try:
        found = json.loads(rest)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) if mark == "k" else mark in ("v", "i")


def _is_field(node: FieldSet) -> bool:
    return not node or SELF in node


def _node(is_field: bool, parts: FieldSet) -> FieldSet | None:
    """Return a node with these parts; None if it is empty."""
    if not parts:
        return _LEAF if is_field else None
    return {SELF: _LEAF, **parts} if is_field else parts


class KeyMissingError(ValueError):
    """An error for a list item without its key fields."""


def element_of(item: Any, shape: Shape) -> str:
    """Return the key of an item in a list of that shape. Raises KeyMissingError."""
    if shape.form == "set":
        return "v:" + json.dumps(item, separators=(",", ":"), ensure_ascii=False)
    if not isinstance(item, dict):
        raise KeyMissingError("associative list with keys may not have non-map elements")
    keys = {key: item.get(key, shape.defaults.get(key)) for key in shape.keys}
    key_values = {key: value for key, value in sorted(keys.items()) if value is not None}
    if not key_values:
        listed = ", ".join(shape.keys)
        raise KeyMissingError(f"associative list with keys has an element that omits key field {listed}")
    return "k:" + json.dumps(key_values, separators=(",", ":"), ensure_ascii=False)


def elements_of(items: list[Any], shape: Shape) -> list[str]:
    """Return the keys of all items of a list."""
    return [element_of(item, shape) for item in items]


class Shape(Struct, frozen=True, eq=False):
    """The shape of a value.

    `one` is atomic. A `map` has named `fields`, and values of shape `value` under other keys. The items of a `list` are
    identified by `keys`, with `defaults` for those that an item omits; those of a `set` by their values. `empty` is
    what Go writes for a field that is not set; None if it omits it.
    """

    form: Literal["one", "map", "list", "set"]
    fields: Mapping[str, Shape] = {}
    value: Shape | None = None
    item: Shape | None = None
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, object] = {}
    empty: dict[str, Any] | list[Any] | None = None


ONE = Shape("one")
SET = Shape("set", item=ONE)

_DEFAULTS = {"protocol": "TCP"}
# The fields that Go writes even if they are not set: lists with keys, and structs that `!` marks as it marks pointers.
_WRITTEN_LISTS = ("containers", "drivers")
_TEMPLATES = (f"{kind}Spec.template" for kind in ("DaemonSet", "Deployment", "Job", "StatefulSet"))
_WRITTEN_STRUCTS = (*_TEMPLATES, "CronJobSpec.jobTemplate", "CustomResourceDefinitionSpec.names")

ANYTHING = Shape("map")
"""The shape of objects without a schema: any keys, with values of any shape."""


@cache
def shape_of_type(name: str) -> Shape:
    """Return the shape of a built-in type. Raises KeyError for an unknown type."""
    return ONE if is_atomic(name) else _granular(name)


def _granular(name: str) -> Shape:
    """Return the shape of an object. Go writes structs that are no pointers even if they are not set."""
    fields = {key: _of_field(of) for key, of in fields_of(name).items()}
    for key, of in fields_of(name).items():
        is_written = f"{name}.{key}" in _WRITTEN_STRUCTS or not of.keeps_zero
        if key in _WRITTEN_LISTS or (isinstance(of.type, Object) and is_written):
            fields[key] = replace(fields[key], empty=[] if key in _WRITTEN_LISTS else {})
    return Shape("map", fields=fields)


def _of_field(of: Field) -> Shape:
    if of.is_atomic:
        return ONE
    if of.is_atomic is False and isinstance(of.type, Object):
        return _granular(of.type.name)
    if not isinstance(of.type, ListOf):
        return _of(of.type)
    if not of.list_keys:
        return ONE if of.list_keys is None else SET
    defaults = {key: _DEFAULTS[key] for key in of.list_keys if key in _DEFAULTS}
    return Shape("list", item=_of(of.type.item), keys=of.list_keys, defaults=defaults)


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
    metadata = {"apiVersion": ONE, "kind": ONE, "metadata": replace(shape_of_type("ObjectMeta"), empty={})}
    return Shape("map", fields={**fields, **metadata}, value=_values(node))


def _of_node(node: Structural) -> Shape:
    if node.type == "array":
        if node.list_type == "atomic" or node.items is None:
            return ONE
        if node.list_type == "set":
            return SET
        defaults = {key: node.items.properties[key].schema.get("default") for key in node.list_keys}
        given_defaults = {key: value for key, value in defaults.items() if value is not None}
        return Shape("list", item=_of_node(node.items), keys=node.list_keys, defaults=given_defaults)
    if node.is_atomic_map:
        return ONE
    if node.type == "object" or node.properties or node.keeps_unknown:
        fields = {name: _of_node(inner) for name, inner in node.properties.items()}
        return Shape("map", fields=fields, value=_values(node))
    return ONE


def _values(node: Structural) -> Shape | None:
    return None if node.values is None or node.values.keeps_unknown else _of_node(node.values)


def fields_of_value(value: Any, shape: Shape, *, with_maps: bool = False) -> FieldSet:
    """Return the fields of an object. Raises KeyMissingError for a list with items without keys.

    With `with_maps`, maps and lists are fields themselves besides their entries, as they are for managers that add them
    by an update.
    """
    return _parts(value, shape, with_maps) or EMPTY


def _parts(value: Any, shape: Shape, with_maps: bool) -> FieldSet | None:
    """Return the nested fields of a value; None if it has none and is a single field."""
    if shape.form == "map" and isinstance(value, dict):
        return _parts_of_map(value, shape, with_maps)
    if shape.form in ("list", "set") and isinstance(value, list) and shape.item is not None:
        found: FieldSet = {}
        for element, item in zip(elements_of(value, shape), value, strict=True):
            parts = None if element in found else _parts(item, shape.item, with_maps)
            found[element] = {SELF: _LEAF, **parts} if parts else _LEAF
        return found
    return None


def _parts_of_map(value: dict[str, Any], shape: Shape, with_maps: bool) -> FieldSet:
    found: FieldSet = {}
    fields = shape.fields
    for key, inner in value.items():
        named = fields.get(key)
        of = named or shape.value or ANYTHING
        parts = _parts(inner, of, with_maps)
        if parts:
            found["f:" + key] = {SELF: _LEAF, **parts} if named is None or with_maps else parts
        elif parts is None or with_maps or inner == {}:
            found["f:" + key] = _LEAF
    return found


class Comparison(Struct):
    """The difference between two values: added, modified and removed fields."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


def compared(old: Any, new: Any, shape: Shape) -> Comparison:
    """Return the difference between two objects. Raises KeyMissingError as `fields_of_value` does."""
    found = Comparison({}, {}, {})
    _compare_maps(old, new, shape, found)
    return found


def _compare_maps(old: dict[str, Any], new: dict[str, Any], shape: Shape, found: Comparison, mark: str = "f:") -> None:
    """Add the differences of two maps; the names of the fields are the keys after the mark."""
    for key in {**old, **new}:
        of = shape.fields.get(key) or shape.value or ANYTHING
        if key not in new and of.empty is None:
            found.removed[mark + key] = _whole(old[key], of)
        elif key not in old and of.empty is None:
            found.added[mark + key] = _whole(new[key], of)
        else:
            before, after = old.get(key, of.empty), new.get(key, of.empty)
            if before is not after and before != after:
                _compare(before, after, of, mark + key, found)


def _compare(old: Any, new: Any, shape: Shape, name: str, found: Comparison) -> None:
    """Add the differences of two unequal values with this name."""
    inner = Comparison({}, {}, {})
    if shape.form == "map" and isinstance(old, dict) and isinstance(new, dict) and (old or new):
        _compare_maps(old, new, shape, inner)
    elif shape.form in ("list", "set") and isinstance(old, list) and isinstance(new, list) and shape.item is not None:
        before, after = (dict(zip(elements_of(items, shape), items, strict=True)) for items in (old, new))
        _compare_maps(before, after, Shape("map", value=shape.item), inner, mark="")
    else:
        found.modified[name] = _LEAF
        return
    for mine, theirs in ((found.added, inner.added), (found.modified, inner.modified), (found.removed, inner.removed)):
        if theirs:
            mine[name] = theirs


def _whole(value: Any, shape: Shape) -> FieldSet:
    """Return the fields of a value that only one side has."""
    parts = _parts(value, shape, True)
    return {SELF: _LEAF, **parts} if parts else _LEAF


def merged(live: Any, applied: Any, shape: Shape) -> Any:
    """Return the live value with the configuration merged in. Raises KeyMissingError for items without keys."""
    if shape.form == "map" and isinstance(live, dict) and isinstance(applied, dict):
        found = dict(live)
        for key, value in applied.items():
            of = shape.fields.get(key) or shape.value or ANYTHING
            found[key] = merged(live[key], value, of) if key in live else value
        return found
    if shape.form in ("list", "set") and isinstance(live, list) and isinstance(applied, list):
        return _merged_lists(live, applied, shape)
    return applied


def _merged_lists(live: list[Any], applied: list[Any], shape: Shape) -> list[Any]:
    """Return the items of both lists: applied ones in their order, others in their place between them."""
    item = shape.item or ONE
    ours, theirs = elements_of(live, shape), elements_of(applied, shape)
    by_element, wanted = dict(zip(ours, live, strict=True)), dict(zip(theirs, applied, strict=True))
    order = deque(dict.fromkeys(theirs))
    shared = deque(element for element in order if element in by_element)
    found: list[Any] = []

    def take_up_to(element: str) -> None:
        """Append applied items in order, up to an item that is in both lists."""
        while order:
            following = order.popleft()
            new = wanted[following]
            found.append(merged(by_element[following], new, item) if following in by_element else new)
            if following == element:
                return

    for element, value in zip(ours, live, strict=True):
        if element not in wanted:
            found.append(value)
        elif shared and shared[0] == element:
            take_up_to(shared.popleft())
    take_up_to("")
    return found


def without(value: Any, fields: FieldSet, shape: Shape) -> Any:
    """Return the value without these fields and everything within them."""
    if shape.form == "map" and isinstance(value, dict):
        found: dict[str, Any] = {}
        for key, inner in value.items():
            below = fields.get("f:" + key)
            if below is None:
                found[key] = inner
            elif below and SELF not in below:
                found[key] = without(inner, below, shape.fields.get(key) or shape.value or ANYTHING)
        return found
    if shape.form in ("list", "set") and isinstance(value, list):
        item = shape.item or ONE
        kept = []
        for element, inner in zip(elements_of(value, shape), value, strict=True):
            below = fields.get(element)
            if below is None:
                kept.append(inner)
            elif below and SELF not in below:
                kept.append(without(inner, below, item))
        return kept
    return value
