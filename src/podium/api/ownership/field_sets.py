"""Field sets, in the format of `managedFields` (FieldsV1).

A set is a tree of dictionaries. `f:NAME` is a field, `k:{"name":"x"}` a list item by its keys, `v:"x"` an item of a
set. A leaf node is a field of the set; an inner node is a field itself if it contains `.`. Sets are shared, and never
mutated.

Source: structured-merge-diff (fieldpath: serialize.go, set.go, element.go).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from podium.api.ownership.shapes import Shape

FieldSet = dict[str, Any]
EMPTY: FieldSet = {}
"""At the top level the empty set; within a set, a field without nested fields."""

SELF = "."
_LEAF: FieldSet = {}


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields in either set."""
    if not left or not right:
        return left or right
    return _union(left, right)


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
    if not left or not right:
        return left
    found = {name: inner for name, inner in left.items() if name not in right}
    for name, inner in left.items():
        if name in right and name != SELF:
            rest = _difference(inner, right[name])
            if rest is not None:
                found[name] = rest
    return found


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


def with_named_fields(fields: FieldSet, shape: Shape, *, is_root: bool = True) -> FieldSet:
    """Return the set with the parents of its fields added, if a schema names them."""
    found: FieldSet = {}
    for name, inner in fields.items():
        if name == SELF or not inner:
            found[name] = inner
            continue
        of = shape_at(shape, name)
        whole = with_named_fields(inner, of, is_root=False)
        is_named = name.startswith("f:") and name[2:] in shape.fields
        found[name] = {SELF: _LEAF, **whole} if is_named and SELF not in whole else whole
    return found


def shape_at(shape: Shape, name: str) -> Shape:
    """Return the shape of the value under a name in a set."""
    if name.startswith("f:"):
        return shape.fields.get(name[2:]) or shape.value or shape
    return shape.item or shape


def paths(fields: FieldSet) -> Iterator[str]:
    """Yield the fields in readable form, such as `.spec.containers[name="main"].image`, sorted."""
    return iter(sorted(_paths(fields, "")))


def _paths(fields: FieldSet, path: str) -> Iterator[str]:
    for name, inner in fields.items():
        if name == SELF:
            continue
        place = path + shown_element(name)
        if _is_field(inner):
            yield place
        yield from _paths(inner, place)


def shown_element(name: str) -> str:
    """Return one path element in readable form (PathElement.String)."""
    mark, _, rest = name.partition(":")
    if mark == "f":
        return f".{rest}"
    if mark == "k":
        keys = json.loads(rest)
        return f"[{','.join(f'{key}={json.dumps(value)}' for key, value in sorted(keys.items()))}]"
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
