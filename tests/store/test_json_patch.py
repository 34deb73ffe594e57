"""JSON patch."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.store.errors import StoreError
from podium.store.patching import MAX_OPERATIONS, json_patch
from tests.store.json_values import OBJECTS, PLAIN

Path = list[str]

# The examples of RFC 6902, appendix A.
EXAMPLES = [
    ({"foo": "bar"}, {"op": "add", "path": "/baz", "value": "qux"}, {"baz": "qux", "foo": "bar"}),
    ({"foo": ["bar", "baz"]}, {"op": "add", "path": "/foo/1", "value": "qux"}, {"foo": ["bar", "qux", "baz"]}),
    ({"baz": "qux", "foo": "bar"}, {"op": "remove", "path": "/baz"}, {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, {"op": "remove", "path": "/foo/1"}, {"foo": ["bar", "baz"]}),
    ({"baz": "qux"}, {"op": "replace", "path": "/baz", "value": "boo"}, {"baz": "boo"}),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        {"op": "move", "from": "/foo/waldo", "path": "/qux/thud"},
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        {"foo": ["all", "grass", "cows", "eat"]},
        {"op": "move", "from": "/foo/1", "path": "/foo/3"},
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    ({"baz": "qux"}, {"op": "test", "path": "/baz", "value": "qux"}, {"baz": "qux"}),
    ({"foo": "bar"}, {"op": "add", "path": "/child", "value": {"g": {}}}, {"foo": "bar", "child": {"g": {}}}),
    ({"foo": "bar"}, {"op": "add", "path": "/baz", "value": "qux", "xyz": 1}, {"foo": "bar", "baz": "qux"}),
    ({"/": 9, "~1": 10}, {"op": "test", "path": "/~01", "value": 10}, {"/": 9, "~1": 10}),
    ({"foo": ["bar"]}, {"op": "add", "path": "/foo/-", "value": ["abc"]}, {"foo": ["bar", ["abc"]]}),
    ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
]


@pytest.mark.parametrize(("target", "operation", "result"), EXAMPLES)
def test_the_examples_of_the_rfc_hold(target: Any, operation: Any, result: Any) -> None:
    assert json_patch(target, [operation]) == result


def code(target: Any, patch: Any) -> int:
    with pytest.raises(StoreError) as caught:
        json_patch(target, patch)
    return caught.value.code


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/baz", "value": "bar"},
        {"op": "test", "path": "/one", "value": True},
        {"op": "test", "path": "/absent", "value": 1},
        {"op": "add", "path": "/absent/bat", "value": "qux"},
        {"op": "add", "path": "/list/3", "value": 1},
        {"op": "add", "path": "/list/01", "value": 1},
        {"op": "add", "path": "/list/-1", "value": 1},
        {"op": "add", "path": "/one/x", "value": 1},
        {"op": "add", "path": "one", "value": 1},
        {"op": "test", "path": "/absent/bat", "value": None},
        {"op": "replace", "path": "/absent/bat", "value": 1},
        {"op": "replace", "path": "/list/-", "value": 1},
        {"op": "replace", "path": "/one/x", "value": 1},
        {"op": "remove", "path": "/absent"},
        {"op": "remove", "path": ""},
        {"op": "move", "from": "/object", "path": "/object/inner"},
        {"op": "move", "from": "/objects/0", "path": "/objects/0/inner"},
        {"op": "copy", "from": "/absent/bat", "path": "/b"},
        {"op": "copy", "from": "/list/2", "path": "/b"},
    ],
)
def test_b05_a_patch_that_cannot_be_done_is_invalid(operation: Any) -> None:
    target = {"baz": "qux", "one": 1, "list": [1, 2], "object": {"inner": {}}, "objects": [{}, {}]}

    assert code(target, [operation]) == 422


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "replace", "path": "/b", "value": 1}, {"a": {}, "b": 1}),
        ({"op": "replace", "path": "/a/b", "value": 1}, {"a": {"b": 1}}),
        ({"op": "test", "path": "/b", "value": None}, {"a": {}}),
        ({"op": "copy", "from": "/b", "path": "/a/b"}, {"a": {"b": None}}),
    ],
)
def test_a_member_that_an_object_lacks_equals_null_and_can_be_replaced(operation: Any, result: Any) -> None:
    """The library of kube-apiserver departs from the RFC in this; patches of webhooks rely on it."""
    assert json_patch({"a": {}}, [operation]) == result


@pytest.mark.parametrize(
    "patch",
    [
        {},
        None,
        [1],
        [{}],
        [{"op": "eat", "path": "/a"}],
        [{"op": ["add"], "path": "/a"}],
        [{"op": "add", "path": "/a"}],
        [{"op": "add", "path": 1, "value": 1}],
        [{"op": "move", "path": "/a"}],
    ],
)
def test_an_invalid_json_patch_is_a_bad_request(patch: Any) -> None:
    assert code({"a": 1}, patch) == 400


def test_b05_a_patch_has_at_most_ten_thousand_operations() -> None:
    """Scenario row 63: max_json_patch_operations_test."""
    operation = {"op": "add", "path": "/a", "value": 1}

    assert json_patch({}, [operation] * MAX_OPERATIONS) == {"a": 1}
    assert code({}, [operation] * (MAX_OPERATIONS + 1)) == 413


def test_b05_copies_cannot_grow_without_bound() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60

    many = [{"op": "copy", "from": "/a", "path": f"/b{number}"} for number in range(4)]

    assert code({"a": ["x" * 1_000]}, doubling) == 422
    assert code({"a": "x" * 1_000_000}, many) == 422
    assert json_patch({"a": "x" * 1_000_000}, many[:3])


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_integers_of_more_than_64_bits_are_refused(number: int) -> None:
    patch = [{"op": "add", "path": "/a", "value": {"b": [number]}}]
    with pytest.raises(StoreError, match=rf"operation 0 of the patch cannot be done: {number} is not an integer of 64"):
        json_patch({}, patch)


def test_a_test_for_null_succeeds_where_there_is_nothing() -> None:
    assert json_patch({"a": 1}, [{"op": "test", "path": "/b", "value": None}]) == {"a": 1}
    assert code({"a": 1}, [{"op": "test", "path": "/a", "value": None}]) == 422


def test_numbers_are_tested_by_value() -> None:
    assert json_patch({"a": [1, {"b": 2}]}, [{"op": "test", "path": "/a", "value": [1.0, {"b": 2}]}])


def get(document: Any, path: Path) -> Any:
    """Return the value at a path; an error where there is none."""
    for step in path:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def put(document: Any, path: Path, value: Any, *, insert: bool) -> Any:
    """Return the document with the value at the path, without changing it."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(document, list):
        index = len(document) if step == "-" else int(step)
        if rest:
            return [*document[:index], put(document[index], rest, value, insert=insert), *document[index + 1 :]]
        return [*document[:index], value, *document[index if insert else index + 1 :]]
    return {**document, step: put(document[step], rest, value, insert=insert) if rest else value}


def cut(document: Any, path: Path) -> Any:
    """Return the document without what is at the path, without changing it."""
    parent = get(document, path[:-1])
    if isinstance(parent, list):
        index = int(path[-1])
        return put(document, path[:-1], [*parent[:index], *parent[index + 1 :]], insert=False)
    return put(document, path[:-1], {key: value for key, value in parent.items() if key != path[-1]}, insert=False)


def paths(value: Any, at: Path) -> list[Path]:
    """Return the paths of all values below the root."""
    entries: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = [(str(index), entry) for index, entry in enumerate(value)]
    return [[*at, step] for step, _ in entries] + [
        path for step, entry in entries for path in paths(entry, [*at, step])
    ]


def pointer(path: Path) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


@given(target=OBJECTS, data=st.data())
def test_operations_do_what_a_plain_reading_of_the_rfc_does(target: Any, data: st.DataObject) -> None:
    as_given, expected, patch = copy.deepcopy(target), target, []
    for _ in range(data.draw(st.integers(0, 5))):
        known = paths(expected, [])
        op = data.draw(st.sampled_from(["add"] if not known else ["add", "remove", "replace", "copy", "move"]))
        containers = [path for path in [[], *known] if isinstance(get(expected, path), dict | list)]
        target_path = _new_place(expected, data.draw(st.sampled_from(containers)), data)
        source = data.draw(st.sampled_from(known)) if known else []
        value = data.draw(PLAIN)
        if op == "add":
            expected = put(expected, target_path, value, insert=True)
            patch.append({"op": op, "path": pointer(target_path), "value": value})
        elif op == "remove":
            expected = cut(expected, source)
            patch.append({"op": op, "path": pointer(source)})
        elif op == "replace":
            expected = put(expected, source, value, insert=False)
            patch.append({"op": op, "path": pointer(source), "value": value})
        elif op == "copy":
            expected = put(expected, target_path, get(expected, source), insert=True)
            patch.append({"op": op, "from": pointer(source), "path": pointer(target_path)})
        elif len(source) == 1:
            # Within other objects the target's path may be another one once the source is gone.
            moved, expected = get(expected, source), cut(expected, source)
            expected = put(expected, ["moved"], moved, insert=True)
            patch.append({"op": op, "from": pointer(source), "path": "/moved"})

    assert json_patch(target, patch) == expected
    assert target == as_given


def _new_place(document: Any, container: Path, data: st.DataObject) -> Path:
    value = get(document, container)
    if isinstance(value, list):
        return [*container, data.draw(st.sampled_from(["-", *map(str, range(len(value) + 1))]))]
    return [*container, data.draw(st.sampled_from(["a", "new", "d/e", ""]))]
