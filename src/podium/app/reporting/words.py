"""Text that a page repeats, once: whoever needs a word has its number."""

from __future__ import annotations

from podium.api.errors import escape

_LONGEST = 4_000


class Words:
    """A table of text, made harmless: control characters and direction marks are written as escape sequences."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._places: dict[str, int] = {}

    def of(self, text: str | None) -> int:
        """The number of a word, -1 for None and for no text."""
        if not text:
            return -1
        place = self._places.get(text)
        if place is None:
            place = self._places[text] = len(self.list)
            self.list.append(escape(text, _LONGEST))
        return place
