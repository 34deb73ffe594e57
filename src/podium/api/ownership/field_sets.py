"""Sets of fields, as `managedFields` writes them (FieldsV1).

A set is a tree of dictionaries. `f:NAME` is a field, `k:{"name":"x"}` an item of a list by its keys, `v:"x"` an item of
a set. A node with nothing in it is a field of the set; a node with parts is one itself if `.` is among them. Sets are
shared, and never changed.

Source: structured-merge-diff (fieldpath: serialize.go, set.go, element.go).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from podium.api.ownership.shapes import Shape

FieldSet = dict[str, Any]
EMPTY: FieldSet = {}
"""The set without fields, as a whole; within a set it is a field without parts."""

SELF = "."
_LEAF: FieldSet = {}


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """The fields of either."""
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
    """The fields of the first that the second has not; parts of what is taken out stay."""
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
    """The fields of both."""
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
    """The set, to which the fields belong that it has parts of, where a schema names them."""
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
    """The shape of what stands under a name of a set."""
    if name.startswith("f:"):
        return shape.fields.get(name[2:]) or shape.value or shape
    return shape.item or shape


def paths(fields: FieldSet) -> Iterator[str]:
    """The fields as people read them, such as `.spec.containers[name="main"].image`, sorted."""
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
    """One step of a path (PathElement.String)."""
    mark, _, rest = name.partition(":")
    if mark == "f":
        return f".{rest}"
    if mark == "k":
        keys = json.loads(rest)
        return f"[{','.join(f'{key}={json.dumps(value)}' for key, value in sorted(keys.items()))}]"
    return f"[={rest}]" if mark == "v" else f"[{rest}]"


def is_set(value: Any, depth: int = 0) -> bool:
    """Whether it is a set of fields that can be read."""
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
    """A node of these parts; None for nothing."""
    if not parts:
        return _LEAF if is_field else None
    return {SELF: _LEAF, **parts} if is_field else parts
