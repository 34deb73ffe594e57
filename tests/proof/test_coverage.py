"""The tables of docs/proof.md agree with the marks of the tests.

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
# Rows about a server that speaks HTTP, not about its rules.
OVER_HTTP_ALONE = (50, 63)
Definition = ast.FunctionDef | ast.ClassDef


def table(heading: str) -> dict[int, list[str]]:
    """Return the further cells of each row of the table under a heading, by the number in the first."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", section, re.MULTILINE)
    assert len(rows) == len(dict(rows)), "a number is listed twice"
    return {int(number): rest.split(" | ") for number, rest in rows}


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


def compared(name: str, listed: set[int]) -> list[str]:
    """Return where the marks of a name and a table differ."""
    found = marked(name)
    return [f"{name} {number} is listed, and no test has the mark" for number in sorted(listed - found.keys())] + [
        f"{name} {number} is not listed, and marked in {found[number][0]}" for number in sorted(found.keys() - listed)
    ]


def test_every_row_is_stated_by_a_test_and_no_other_is() -> None:
    assert not compared("upstream", set(table(UPSTREAM)))


def test_every_failure_that_is_listed_is_made_again_and_every_one_made_again_is_listed() -> None:
    assert not compared("failure", set(table(FAILURES)))


def test_all_rows_are_listed_with_what_they_state() -> None:
    rows = table(UPSTREAM)

    assert list(rows) == [row for row in range(1, 64) if row not in OVER_HTTP_ALONE]
    assert {len(cells) for cells in rows.values()} == {2}


@pytest.mark.parametrize("name", ["upstream", "failure"])
def test_no_mark_stands_where_it_would_not_be_read(name: str) -> None:
    """Such as on a helper, or on a parameter: then a row would pass for stated that is not."""
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
    rows = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| ")][1:]

    assert len(rows) > 20
    assert [row for row in rows if "::test_" not in row] == []
