import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError
from podium.api.input.codec import documents_in, load_text
from podium.api.input.json import NotJSONError, parse_documents
from podium.api.input.yaml import MAX_DEPTH
from podium.api.pod import Pod


def error_of(text: str) -> str:
    with pytest.raises(InputError) as caught:
        list(parse_documents(text))
    return str(caught.value)


VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.lists(VALUES, min_size=1, max_size=3), st.sampled_from(["", " ", "\n\n"]))
def test_documents_that_follow_one_another_read_as_json_does(values: list[Any], space: str) -> None:
    # A number ends only where something else begins.
    text = space.join(json.dumps([value]) for value in values)

    assert list(parse_documents(text)) == [(index, [value]) for index, value in enumerate(values, start=1)]


@given(
    st.lists(st.dictionaries(st.text(max_size=3), VALUES | st.none(), max_size=3), min_size=1, max_size=3),
    st.sampled_from(["\n", "\n\n", " \n", "\r\n", "\r", " ", '\n{"a": 1, "a": 2}\n', "\n[NaN]\n", "\n\x0c\n"]),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_documents_in_lines_of_their_own_are_what_a_close_reading_makes_of_them(
    values: list[dict[str, Any]], between: str, indent: int | None, is_ascii: bool
) -> None:
    text = between.join(json.dumps(value, indent=indent, ensure_ascii=is_ascii) for value in values)
    try:
        closely, problem = list(parse_documents(text)), ""
    except NotJSONError:
        return
    except InputError as error:
        closely, problem = [], str(error)

    if problem:
        with pytest.raises(InputError) as caught:
            documents_in(text, lambda _: None)
        assert str(caught.value) == problem
    else:
        # 1 and 1.0 are equal, and not the same.
        assert repr(documents_in(text, lambda _: None)) == repr(closely)


def test_null_items_of_lists_stay() -> None:
    assert list(parse_documents('{"enum": [null, [null]]}')) == [(1, {"enum": [None, [None]]})]


def test_null_entries_are_left_out() -> None:
    assert list(parse_documents('{"a": null, "b": [{"c": null, "d": 1}]}')) == [(1, {"b": [{"d": 1}]})]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"a": [1, {"b": 1, "c": 2, "b": 3}]}', "document 1, .a[1].b: is given twice"),
        ('{"a": null, "a": 1}', "document 1, .a: is given twice"),
        ('{"a": NaN}', "document 1, .a: NaN is not a number that objects can hold"),
        ('[1, {"a b": [-Infinity]}]', 'document 1, [1]["a b"][0]: -Infinity is not a number that objects can hold'),
        ('{} {"a": 1e999}', 'document 2, .a: "1e999" is too large for a number'),
        (r'{"a": "\ud800"}', r'document 1, .a: "\ud800" has half a surrogate pair, which is not a character'),
        (r'{"\udc00": 1}', r'document 1: the key "\udc00" has half a surrogate pair, which is not a character'),
    ],
)
def test_json_that_only_python_accepts_is_rejected_with_its_path(text: str, error: str) -> None:
    assert error_of(text) == error


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert list(parse_documents(r'{"a": "\ud83d\ude00"}')) == [(1, {"a": "😀"})]


def test_an_integer_of_thousands_of_digits_is_refused() -> None:
    assert error_of(f'{{"a": {"1" * 5_000}}}') == "document 1: a number has thousands of digits"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1', "line 1, column 8"),
        ('{\n"a": 1,}', "line 2, column 8"),
        ('{"a": 1}}', "document 2: line 1, column 9"),
        ('{"a": "\x01"}', "line 1, column 8"),
        ("{'a': 1}", "line 1, column 2"),
    ],
)
def test_invalid_json_is_rejected_with_its_place(text: str, place: str) -> None:
    assert f"{place}: not valid JSON" in error_of(text)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_values_nest_to_a_depth_and_no_deeper(opening: str, closing: str) -> None:
    assert list(parse_documents(opening * MAX_DEPTH + "1" + closing * MAX_DEPTH))

    deeper = MAX_DEPTH + 1
    assert "nested too deep" in error_of(opening * deeper + "1" + closing * deeper)
    assert "nested too deep" in error_of(opening * 100_000)


@pytest.mark.parametrize("refused", ['{"a": NaN, ', '{"x": {"a": 1, "a": 2}, ', '{"a": 1e999, ', r'{"a": "\ud800", '])
def test_a_syntax_error_after_an_invalid_value_is_reported_first(refused: str) -> None:
    with pytest.raises(NotJSONError, match="not valid JSON"):
        list(parse_documents(refused))


POD = "apiVersion: v1, kind: Pod, metadata: {name: web}"


@pytest.mark.parametrize(
    "text",
    [
        f"{{{POD}}}",
        f"{{{POD},}}",
        f"{{{POD}}}  # the first\n---\n{{{POD.replace('web', 'other')}}}\n",
        f" \n{{{POD}}}\n---\n{POD.replace(', ', chr(10)).replace('web', 'other')}\n",
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},}',
    ],
)
def test_yaml_in_flow_style_is_taken_for_what_it_is_though_it_begins_like_json(text: str) -> None:
    first = load_text(text, "in")[0]

    assert isinstance(first.object, Pod)
    assert first.object.key == "default/web"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"kind": "Pod", "kind": "Pod"}', "in, document 1, .kind: is given twice"),
        ('{"kind": NaN}', "in, document 1, .kind: NaN is not a number that objects can hold"),
        ('{"apiVersion": "v1", "kind": [null]}', "in, document 1, .kind: a list is not text"),
        ("[" * 300 + "]" * 300, f"in, document 1: nested too deep; at most {MAX_DEPTH} levels are allowed"),
    ],
)
def test_json_that_is_refused_is_not_tried_as_yaml(text: str, error: str) -> None:
    with pytest.raises(InputError) as caught:
        load_text(text, "in")
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"kind": "Pod"', "line 1, column 15"),
        ('{"kind": "Pod"}}', "document 2: line 1, column 16"),
        ("{kind: Pod, kind: Pod}", "line 1, column 2"),
    ],
)
def test_text_that_is_neither_json_nor_yaml_gets_the_json_error(text: str, place: str) -> None:
    with pytest.raises(InputError, match=f"{place}: not valid JSON"):
        load_text(text, "in")
