"""Fixtures for tests of reading."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.input.listed_items import ItemReader


@pytest.fixture
def decoded_items(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a live list of the items that are decoded: those that no stencil reads."""
    decoded: list[bytes] = []
    value = ItemReader.value

    def note(reader: ItemReader, item: bytes) -> Any:
        decoded.append(item)
        return value(reader, item)

    monkeypatch.setattr(ItemReader, "value", note)
    return decoded
