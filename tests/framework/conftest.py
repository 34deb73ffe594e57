"""Fixtures for extensions of Podium."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import pytest

from tests.framework.extensions import Write

_numbers = count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Provide a function that writes an importable module for this test, and returns its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text: str) -> str:
        name = f"written_for_a_test_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return write
