"""The statements about security name existing tests."""

from __future__ import annotations

import re

import pytest

from tests.docs.blocks import ROOT

DOCUMENT = ROOT / "docs" / "security.md"
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", DOCUMENT.read_text())


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_every_named_test_exists(file: str, name: str) -> None:
    path = ROOT / file

    assert path.is_file()
    assert re.search(rf"^(?:async )?def {name}\(", path.read_text(), re.MULTILINE)


def test_every_line_names_one() -> None:
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("|") and "---" not in line]
    lines = [row for row in rows if row != "| what | test |"]

    assert len(lines) > 30
    assert [row for row in lines if "::test_" not in row] == []
