"""Programs that wait for a shorter time after failures than at a real cluster."""

from __future__ import annotations

import pytest

from podium.client import reflector_state, transport


@pytest.fixture(autouse=True)
def retries_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients repeat failed requests soon: the tests state what is repeated, not when."""
    monkeypatch.setattr(reflector_state, "FIRST_WAIT_NS", 50_000_000)
    monkeypatch.setattr(transport, "_FIRST_PAUSE_S", 0.02)
