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


def test_every_guarantee_names_one() -> None:
    text = DOCUMENT.read_text().partition("\n## Not guaranteed\n")[0]
    guarantees = re.split(r"^- ", text, flags=re.MULTILINE)[1:]

    assert len(guarantees) > 30
    assert [guarantee for guarantee in guarantees if "::test_" not in guarantee] == []
