from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError
from podium.api.input.yaml import MAX_DEPTH, MAX_UNFOLDED, parse_documents


def only(text: str) -> Any:
    ((number, value),) = parse_documents(text)
    assert number == 1
    return value


def error_of(text: str) -> str:
    with pytest.raises(InputError) as caught:
        list(parse_documents(text))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        ("0x1F", 31),
        ("0o17", 15),
        ("0644", 420),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1_000.0),
        ("08", 8.0),
    ],
)
def test_plain_scalars_are_booleans_and_numbers_of_the_core_schema(text: str, value: object) -> None:
    read = only(f"a: {text}")["a"]

    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "text", ["no", "yes", "on", "Off", "y", "1:30", "2024-01-01", "=", "1_000", "10.0.0.1", "0x", "1.2.3", "+", "tRUE"]
)
def test_other_plain_scalars_are_text(text: str) -> None:
    assert only(f"a: {text}") == {"a": text}


@pytest.mark.parametrize("text", ["'1'", '"1"', "|-\n  1"])
def test_quoted_and_block_scalars_are_text(text: str) -> None:
    assert only(f"a: {text}") == {"a": "1"}


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_null_entries_are_left_out(text: str) -> None:
    assert only(f"a: {text}\nb: 1") == {"b": 1}


def test_null_items_of_lists_stay() -> None:
    assert only("a:\n- 1\n-\n") == {"a": [1, None]}


def test_keys_that_are_numbers_or_booleans_become_their_text() -> None:
    assert only("1: a\ntrue: b\n1.5: c\n1e3: d\n0x10: e") == {
        "1": "a",
        "true": "b",
        "1.5": "c",
        "1000": "d",
        "16": "e",
    }


@pytest.mark.parametrize("key", ["~", "? [a]\n", "? {a: b}\n", "? {}\n"])
def test_keys_that_are_no_text_are_refused(key: str) -> None:
    assert "a key must be text" in error_of(f"{key}: x")


@pytest.mark.parametrize("text", [".nan", ".NaN", ".inf", "-.Inf", "+.INF"])
def test_numbers_that_are_not_finite_are_refused(text: str) -> None:
    assert "is not a number that objects can hold" in error_of(f"a: {text}")


def test_numbers_too_large_or_too_long_are_refused() -> None:
    assert '"1e999" is too large for a number' in error_of("a: 1e999")
    assert "at most 64 characters" in error_of(f"a: {'1' * 65}")
    assert only(f"a: '{'1' * 65}'") == {"a": "1" * 65}
    assert only(f"a: {'1' * 65}x") == {"a": f"{'1' * 65}x"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: !!str 1", 'the tag "tag:yaml.org,2002:str" is not taken'),
        ("a: ! 1", 'the tag "!" is not taken'),
        ("a: !!map {b: c}", 'the tag "tag:yaml.org,2002:map" is not taken'),
    ],
)
def test_tags_are_refused(text: str, problem: str) -> None:
    assert problem in error_of(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &x 1\nb: *x", {"a": 1, "b": 1}),
        ("a: &x {c: [1]}\nb: [*x, *x]", {"a": {"c": [1]}, "b": [{"c": [1]}, {"c": [1]}]}),
        ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
        ("a: &x key\n*x : b", {"a": "key", "key": "b"}),
        ("a: &x\nb: [*x]", {"b": [None]}),
        ("a: &x {c: 1, d: 2}\nb: {<<: *x, d: 3}", {"a": {"c": 1, "d": 2}, "b": {"c": 1, "d": 3}}),
        ("a: {<<: [{c: 1}, {c: 2, d: 2}], e: 3}", {"a": {"c": 1, "d": 2, "e": 3}}),
    ],
)
def test_an_alias_stands_for_what_its_anchor_marks(text: str, value: Any) -> None:
    assert only(text) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: *x", "line 1, column 4: the alias *x stands for nothing"),
        ("a: &x 1\n---\nb: *x", "document 2: line 3, column 4: the alias *x stands for nothing"),
        ("a: &x [*x]", "line 1, column 8: the alias *x stands within the value that it stands for"),
        ("a: &x 1\nb: {<<: *x}", "the merge key << takes an object, or a list of objects"),
        ("a: {<<: [1]}", "the merge key << takes an object, or a list of objects"),
    ],
)
def test_an_alias_that_stands_for_nothing_is_refused(text: str, problem: str) -> None:
    assert problem in error_of(text)


def test_aliases_bring_in_values_up_to_a_number_in_a_text() -> None:
    anchor = f"a: &x [{', '.join('x' * 99)}]\nb:\n"

    assert len(only(anchor + "- *x\n" * (MAX_UNFOLDED // 100))["b"]) == MAX_UNFOLDED // 100
    assert f"aliases bring in more than {MAX_UNFOLDED} values" in error_of(
        anchor + "- *x\n" * (MAX_UNFOLDED // 100 + 1)
    )


def test_aliases_reach_no_deeper_than_what_is_written_out() -> None:
    half = MAX_DEPTH // 2
    text = f"- &x {'[' * half}1{']' * half}\n- {'[' * (half - 1)}*x{']' * (half - 1)}\n"

    assert isinstance(only(text), list)
    assert "nested too deep" in error_of(text.replace("*x", "[*x]"))


def test_a_quoted_merge_key_is_a_key() -> None:
    assert only("'<<': a") == {"<<": "a"}


def test_a_key_given_twice_is_refused_with_its_place() -> None:
    assert error_of("a: 1\nb:\n  c: 1\n  c: 2") == 'document 1: line 4, column 3: the key "c" is given twice'
    assert 'the key "1" is given twice' in error_of("1: a\n'1': b")
    assert 'the key "a" is given twice' in error_of("a: null\na: 1")


def test_documents_are_counted_with_the_empty_ones_that_are_left_out() -> None:
    assert list(parse_documents("---\na: 1\n---\n# nothing\n---\nb: 2\n")) == [(1, {"a": 1}), (3, {"b": 2})]


def test_a_text_without_documents_has_none() -> None:
    assert list(parse_documents("# nothing\n")) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [("a: 'x", "line 1"), ("a: 1\n---\nb: [", "document 2"), ("\ta: 1", "column 1"), ("a: \x07", "control")],
)
def test_what_is_no_yaml_is_refused_with_its_place(text: str, place: str) -> None:
    assert "not valid YAML" in error_of(text)
    assert place in error_of(text)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_values_nest_to_a_depth_and_no_deeper(opening: str) -> None:
    closing = {"[": "]", "{a: ": "}", "- ": ""}[opening]

    value = only(opening * MAX_DEPTH + "x" + closing * MAX_DEPTH)
    depth = 0
    while value != "x":
        value = value[0] if isinstance(value, list) else value["a"]
        depth += 1

    assert depth == MAX_DEPTH
    assert f"nested too deep; at most {MAX_DEPTH}" in error_of(opening * (MAX_DEPTH + 1))


@given(st.text(alphabet="ab01:-[]{},&*!<>|#'\"\n \t~.?%@`"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        documents = list(parse_documents(text))
    except InputError:
        return

    assert all(value is not None for _, value in documents)
