"""JSON merge patch."""

import copy
from typing import Any

import pytest
from hypothesis import given

from podium.store.patching import merge_patch
from tests.store.json_values import OBJECTS, VALUES

# The examples of RFC 7386, appendix A, where the target is an object.
EXAMPLES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": 1}, {"a": 1}, {"e": 1, "a": 1}),
    ({"a": "b"}, ["c"], ["c"]),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), EXAMPLES)
def test_the_examples_of_the_rfc_hold(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def difference(before: Any, after: Any) -> Any:
    """Return a patch that leads from one value to the other."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    removed = dict.fromkeys(before.keys() - after.keys())
    return removed | {key: difference(before.get(key), value) for key, value in after.items()}


@given(before=OBJECTS, after=OBJECTS)
def test_a_difference_leads_from_any_object_to_any_other(before: Any, after: Any) -> None:
    assert merge_patch(before, difference(before, after)) == after


@given(target=OBJECTS, patch=VALUES)
def test_neither_target_nor_patch_is_changed(target: Any, patch: Any) -> None:
    as_given = copy.deepcopy((target, patch))

    merge_patch(target, patch)

    assert (target, patch) == as_given
