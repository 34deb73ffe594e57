"""Answers in a notebook, where they look as they do in a terminal, and as values, which are one line."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

from podium.api.errors import escape as harmless

if TYPE_CHECKING:
    from podium.app.console.page import Page

_LONGEST = 200
_CODE = re.compile(r"\x1b\[([0-9;]+)m(.*?)\x1b\[0m", re.DOTALL)
# Of a terminal's codes, what they look like on light ground and on dark.
_STYLES = {
    "1": "font-weight:bold",
    "2": "opacity:.65",
    "31": "color:#c62828",
    "32": "color:#2e7d32",
    "33": "color:#b26a00",
    "36": "color:#00838f",
}
_BLOCK = "white-space:pre;overflow-x:auto;line-height:1.35;font-size:.9em"


class Shown:
    """What an answer has that is shown: it writes itself on a page, as its command does, and says itself in a line."""

    __slots__ = ()

    def _in_a_line(self) -> str:
        raise NotImplementedError

    def write(self, page: Page) -> None:
        """Write the answer as its command prints it."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The answer as its command prints it where no terminal is."""
        return _page(self, coloured=False)

    def html(self) -> str:
        """The answer as a picture, which is one HTML file that needs nothing else: what `-o html` prints."""
        from podium.app.reporting import report

        return report(self._pictured())

    def _pictured(self) -> Any:
        """What there is a picture of."""
        return self

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {harmless(self._in_a_line(), _LONGEST)}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": self.text, "text/html": in_html(_page(self, coloured=True))}


def in_html(text: str) -> str:
    """The text of a coloured page as HTML."""
    parts, place = [], 0
    for found in _CODE.finditer(text):
        parts.append(escape(text[place : found.start()]))
        style = ";".join(_STYLES[code] for code in found[1].split(";"))
        parts.append(f'<span style="{style}">{escape(found[2])}</span>')
        place = found.end()
    return f'<pre style="{_BLOCK}">{"".join(parts)}{escape(text[place:])}</pre>'


def _page(answer: Shown, *, coloured: bool) -> str:
    from podium.app.console.page import Page

    page = Page(coloured=coloured)
    answer.write(page)
    return page.text
