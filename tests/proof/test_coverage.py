"""The lists of docs/proof.md agree with the marks of the tests.

Marks are read from the files of the tests, so that the answer does not depend on which tests are run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "proof.md"
UPSTREAM, FAILURES = "Kubernetes' own tests", "Reproduced failures"
# Rules about HTTP alone.
OVER_HTTP_ALONE = (50, 63)
Definition = ast.FunctionDef | ast.ClassDef


def listed(heading: str) -> dict[int, str]:
    """Return what the list under a heading says, by the number at the beginning of each item."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    items = re.findall(r"^- (\d+): (.+(?:\n  .+)*)$", section, re.MULTILINE)
    assert len(items) == len(dict(items)), "a number is listed twice"
    return {int(number): rest for number, rest in items}


@cache
def marked(name: str) -> dict[int, list[str]]:
    """Return the tests that carry a mark, by each number in it."""
    found: dict[int, list[str]] = {}
    for where, mark in marks_of(name):
        for argument in mark.args:
            number = ast.literal_eval(argument)
            assert isinstance(number, int), f"{where}: a mark without a number"
            found.setdefault(number, []).append(where)
    return found


@cache
def marks_of(name: str) -> list[tuple[str, ast.Call]]:
    """Return the marks of a name, each with its place; only files that contain the name are parsed."""
    return [
        (f"{file.name}: {where}", mark)
        for file in sorted(TESTS.rglob("test_*.py"))
        if f".{name}" in (text := file.read_text())
        for where, mark in marks_in(ast.parse(text))
        if isinstance(mark.func, ast.Attribute) and mark.func.attr == name
    ]


def marks_in(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Yield what decorates the tests and classes of a file, and what marks all of the file."""
    for one in tree.body:
        if isinstance(one, ast.Assign) and [ast.unparse(target) for target in one.targets] == ["pytestmark"]:
            values = one.value.elts if isinstance(one.value, ast.List) else [one.value]
            yield from (("the file", mark) for mark in values if isinstance(mark, ast.Call))
    for definition in ast.walk(tree):
        if isinstance(definition, Definition) and definition.name.lower().startswith("test"):
            yield from ((definition.name, mark) for mark in definition.decorator_list if isinstance(mark, ast.Call))


def compared(name: str, numbers: set[int]) -> list[str]:
    """Return where the marks of a name and a list differ."""
    found = marked(name)
    return [f"{name} {number} is listed, and no test has the mark" for number in sorted(numbers - found.keys())] + [
        f"{name} {number} is not listed, and marked in {found[number][0]}" for number in sorted(found.keys() - numbers)
    ]


def test_every_rule_is_stated_by_a_test_and_no_other_is() -> None:
    assert not compared("upstream", set(listed(UPSTREAM)))


def test_every_failure_that_is_listed_is_made_again_and_every_one_made_again_is_listed() -> None:
    assert not compared("failure", set(listed(FAILURES)))


def test_all_rules_are_listed_each_after_its_test() -> None:
    rules = listed(UPSTREAM)

    assert list(rules) == [number for number in range(1, 64) if number not in OVER_HTTP_ALONE]
    assert [rule for rule in rules.values() if ": " not in rule] == []


@pytest.mark.parametrize("name", ["upstream", "failure"])
def test_no_mark_stands_where_it_would_not_be_read(name: str) -> None:
    """Such as on a helper, or on a parameter: then a rule would pass for stated that is not."""
    written = sum(
        len(re.findall(rf"pytest\.mark\.{name}\(", file.read_text()))
        for file in TESTS.rglob("*.py")
        if file != Path(__file__)
    )

    assert len(marks_of(name)) == written


@pytest.mark.parametrize(("file", "name"), sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text()))))
def test_every_test_that_holds_a_sentence_of_the_design_is_there(file: str, name: str) -> None:
    assert re.search(rf"^def {name}\(", (TESTS.parent / file).read_text(), re.MULTILINE)


def test_every_sentence_of_the_design_has_a_test_that_holds_it() -> None:
    section = PAGE.read_text().partition("\n## Controlled rescheduling design\n")[2]
    sentences = re.split(r"^- ", section.partition("\n## ")[0], flags=re.MULTILINE)[1:]

    assert len(sentences) > 20
    assert [sentence for sentence in sentences if "::test_" not in sentence] == []
