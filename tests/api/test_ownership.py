"""Sets of fields, and the objects that have them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from podium.api.ownership import (
    ANYTHING,
    FieldSet,
    compared,
    difference,
    fields_of_value,
    intersection,
    is_set,
    merged,
    paths,
    shape_of_type,
    union,
    without,
)
from podium.api.schemas.schema import _types

NAMES = some.sampled_from(("f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'))
VALUES = some.recursive(
    some.integers(0, 2) | some.text("ab", max_size=1),
    lambda inner: some.dictionaries(some.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = some.dictionaries(some.sampled_from("abc"), VALUES, max_size=3)


def sets() -> Any:
    """Draw sets of fields as paths, and as trees."""
    return some.frozensets(some.lists(NAMES, min_size=1, max_size=3).map(tuple), max_size=6)


def tree(fields: frozenset[tuple[str, ...]]) -> FieldSet:
    found: FieldSet = {}
    for path in fields:
        part: FieldSet = {}
        for name in reversed(path):
            part = {name: part}
        found = union(found, part)
    return found


def reported(fields: FieldSet, at: tuple[str, ...] = ()) -> frozenset[tuple[str, ...]]:
    """Return the paths in a tree."""
    found: set[tuple[str, ...]] = set()
    for name, inner in fields.items():
        if name == ".":
            found.add(at)
            continue
        if not inner:
            found.add((*at, name))
        found |= reported(inner, (*at, name))
    return frozenset(found)


@given(sets(), sets())
def test_trees_are_joined_and_parted_as_sets_of_paths_are(left: Any, right: Any) -> None:
    assert reported(tree(left)) == left
    assert reported(union(tree(left), tree(right))) == left | right
    assert reported(difference(tree(left), tree(right))) == left - right
    assert reported(intersection(tree(left), tree(right))) == left & right


@given(OBJECTS, OBJECTS)
def test_differences_are_the_fields_that_a_merge_changes(old: Any, new: Any) -> None:
    changes = compared(old, new, ANYTHING)

    assert (changes == compared(old, old, ANYTHING)) is (old == new)
    rest = without(merged(old, new, ANYTHING), changes.removed, ANYTHING)
    again = compared(rest, new, ANYTHING)
    assert (again.added, again.modified) == ({}, {})


@given(OBJECTS)
def test_an_object_without_its_fields_has_none(value: Any) -> None:
    fields = fields_of_value(value, ANYTHING)

    assert is_set(fields)
    assert compared(without(value, fields, ANYTHING), {}, ANYTHING).modified == {}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"f:spec": {"f:replicas": {}}}, [".spec.replicas"]),
        ({"f:a": {'k:{"name":"x","port":1}': {".": {}, "f:b": {}}}}, ['.a[name="x",port=1]', '.a[name="x",port=1].b']),
        ({"f:finalizers": {'v:"x/y"': {}}}, ['.finalizers[="x/y"]']),
    ],
)
def test_fields_are_shown_as_paths(fields: FieldSet, expected: list[str]) -> None:
    assert list(paths(fields)) == expected


@pytest.mark.parametrize("value", [None, [], {"x": {}}, {"f:a": []}, {"k:x": {}}, {"f:a": {"k:[": {}}}])
def test_an_invalid_field_set_is_reported(value: Any) -> None:
    assert not is_set(value)


def test_every_type_has_a_shape() -> None:
    assert [name for name in sorted(_types()) if shape_of_type(name).form not in ("one", "map")] == []
