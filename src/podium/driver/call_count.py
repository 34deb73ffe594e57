"""How often components are called, for those who limit it."""

from __future__ import annotations

from collections.abc import Sequence
from sys import maxsize

from podium.driver.component import Component


class CallCount:
    """Counts ``calls``. After the first ``unchecked`` ones `check` is asked before each; this one lets all pass."""

    def __init__(self, unchecked: int = maxsize) -> None:
        self.calls = 0
        self.unchecked = unchecked

    def check(self, components: Sequence[Component]) -> None:
        """These are about to be called, and counted."""
