import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError
from podium.api.input.yaml import MAX_DEPTH, MAX_UNFOLDED, is_text, parse_documents


def only(text: str) -> Any:
    ((number, value),) = parse_documents(text)
    assert number == 1
    return value


def error_of(text: str) -> str:
    with pytest.raises(InputError) as caught:
        list(parse_documents(text))
    return str(caught.value)


BOOLEANS = {
    True: "y Y yes Yes YES true True TRUE on On ON",
    False: "n N no No NO false False FALSE off Off OFF",
}
TEXT = (
    "yEs oN OfF tRUE nULL = << 1:30 190:20:30.15 2001-12-14 2001-12-14T21:59:43.10-05:00 1,000 10.0.0.1 1.2.3 + .. . "
    ".5. _1000 0x 0b 0b12 0o8 0x1p4 0x1.8p1 0b1e1 -0b-11 0B-11 ._5 .5__0 .5_ .5_e1 .e1 .0x1 .1p4 .Inf_ inf +inf nan "
    "Infinity 1e400 .1e400 -1e400 0x1FFFFFFFFFFFFFFFFF -0x8000000000000001 \u0663"
)
NUMBERS = {
    "0": 0,
    "12": 12,
    "-3": -3,
    "+3": 3,
    "-0": 0,
    "-0.0": 0,
    "1_000": 1000,
    "1__000": 1000,
    "1000_": 1000,
    "-_1": -1,
    "017": 15,
    "-017": -15,
    "00": 0,
    "0_17": 15,
    "0o17": 15,
    "0O17": 15,
    "+0o17": 15,
    "0_o7": 7,
    "0x1F": 31,
    "0X1f": 31,
    "-0x1F": -31,
    "0x_0A": 10,
    "0b11": 3,
    "0B11": 3,
    "-0b11": -3,
    "0b-11": -3,
    "0b+11": 3,
    "0b_1": 1,
    "08": 8,
    "0_8": 8,
    "1.": 1,
    "1.0": 1,
    "1e1": 10,
    "1E1": 10,
    "1_e1": 10,
    "1e_1": 10,
    "+1_0e1": 100,
    "12e03": 12_000,
    "685.230_15e+03": 685_230.15,
    "1.5": 1.5,
    "1_.5": 1.5,
    "09.5": 9.5,
    ".5": 0.5,
    ".5_0": 0.5,
    ".5e1_0": 5_000_000_000,
    "-.5": -0.5,
    "1e-400": 0,
    "1e-7": 1e-7,
    "1e21": 1e21,
    "9223372036854775807": 2**63 - 1,
    "-9223372036854775808": -(2**63),
    "9223372036854775808": 2.0**63,
    "18446744073709551616": 2.0**64,
    "+9223372036854775808": 2.0**63,
    "0xFFFFFFFFFFFFFFFF": 2.0**64,
    "0777777777777777777777": 2**63 - 1,
    "07777777777777777777777": 7.777777777777777e21,
    f"0b{'1' * 64}": 2.0**64,
    "1" * 69: 1.1111111111111112e68,
}
"""What kubectl made of each plain scalar: measured with `kubectl annotate --local -o json`."""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, value) for value, texts in BOOLEANS.items() for text in texts.split()),
        *((text, text) for text in TEXT.split()),
        *NUMBERS.items(),
    ],
)
def test_plain_scalars_are_what_kubectl_takes_them_for(text: str, value: object) -> None:
    for read in (
        only(f"a: {text}")["a"],
        only(f"- {text}")[0],
        only(f"a: [{text} ]")["a"][0] if "," not in text else value,
    ):
        assert read == value
        assert type(read) is type(value)


def of_64_bits(text: str) -> int | float:
    return int(text) if -(2**63) <= int(text) < 2**63 else float(text)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
def test_kubectl_takes_every_scalar_of_the_table_for_the_same() -> None:
    texts = [*" ".join(BOOLEANS.values()).split(), *TEXT.split(), *NUMBERS]
    lines = [f"- {text}" for text in texts]
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nread:\n" + "\n".join(lines)

    answer = subprocess.run(
        ["kubectl", "annotate", "--local", "-f", "-", "a=b", "-o", "json"],
        input=manifest,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert dict(zip(texts, json.loads(answer.stdout, parse_int=of_64_bits)["read"], strict=True)) == {
        text: only(f"- {text}")[0] for text in texts
    }


@pytest.mark.parametrize("text", ["'1'", '"1"', "|-\n  1"])
def test_quoted_and_block_scalars_are_text(text: str) -> None:
    assert only(f"a: {text}") == {"a": "1"}


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_null_entries_are_left_out(text: str) -> None:
    assert only(f"a: {text}\nb: 1") == {"b": 1}


@pytest.mark.parametrize("text", ["y", "no", "On", "1_000", "0b11", "1e1", "12", "null", "a:"])
def test_only_what_is_text_without_quotes_is_called_so(text: str) -> None:
    assert not is_text(text)
    assert all(map(is_text, ("yEs", "10.0.0.1", "1:30", "1e400", "web-0")))


def test_null_items_of_lists_stay() -> None:
    assert only("a:\n- 1\n-\n") == {"a": [1, None]}


def test_keys_that_are_numbers_or_booleans_become_the_text_that_kubectl_makes_of_them() -> None:
    assert only(
        "1: a\nyes: b\n1.50: c\n1e3: d\n0x10: e\n1e6: f\n12345678.9: g\n0.00001: h\n1_1: i\n"
        "2001-12-14: j\nn: k\n0.0: l\n"
    ) == {
        "1": "a",
        "true": "b",
        "1.5": "c",
        "1000": "d",
        "16": "e",
        "1e+06": "f",
        "1.2345679e+07": "g",
        "1e-05": "h",
        "11": "i",
        "2001-12-14": "j",
        "false": "k",
        "0": "l",
    }


def test_keys_that_kubectl_takes_for_the_same_are_given_twice() -> None:
    assert 'the key "true" is given twice' in error_of("yes: a\non: b")


@pytest.mark.parametrize("key", ["~", "9223372036854775808", ".inf", "1e39", "? [a]\n", "? {a: b}\n", "? {}\n"])
def test_non_text_keys_are_rejected(key: str) -> None:
    assert "a key must be text" in error_of(f"{key}: x")


@pytest.mark.parametrize("text", [".nan", ".NaN", ".inf", "-.Inf", "+.INF"])
def test_numbers_that_are_not_finite_are_refused(text: str) -> None:
    assert "is not a number that objects can hold" in error_of(f"a: {text}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: !!str 1", 'the tag "tag:yaml.org,2002:str" is not supported'),
        ("a: ! 1", 'the tag "!" is not supported'),
        ("a: !!map {b: c}", 'the tag "tag:yaml.org,2002:map" is not supported'),
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
def test_an_alias_repeats_what_its_anchor_marks(text: str, value: Any) -> None:
    assert only(text) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: *x", "line 1, column 4: the alias *x refers to no anchor"),
        ("a: &x 1\n---\nb: *x", "document 2: line 3, column 4: the alias *x refers to no anchor"),
        ("a: &x [*x]", "line 1, column 8: the alias *x is within the value that it refers to"),
        ("a: &x 1\nb: {<<: *x}", "the merge key << takes an object, or a list of objects"),
        ("a: {<<: [1]}", "the merge key << takes an object, or a list of objects"),
    ],
)
def test_an_undefined_alias_is_rejected(text: str, problem: str) -> None:
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
def test_invalid_yaml_is_rejected_with_its_place(text: str, place: str) -> None:
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
