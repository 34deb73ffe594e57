"""Text for people: lines, paragraphs and aligned columns, in colour where it is wanted.

Everything is made harmless here: whatever a terminal would act on is written as an escape sequence.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from podium.api.errors import escape
from podium.app.console.cells import Cell, Name, Names, Part, counted, fitted, listed, names_of, style_of, text_of
from podium.app.console.table import GAP, Table

if TYPE_CHECKING:
    from podium.api.basis import Caveat

__all__ = ["WIDTH", "Cell", "Name", "Names", "Page", "Part", "counted", "fitted", "listed", "names_of"]

WIDTH = 100
"""How wide a page is that no terminal shows."""

_LONGEST = 10_000
_NARROWEST = 16
_NAMES = 0.6
_CODES = {"": "", "bold": "1", "dim": "2", "good": "32", "bad": "31", "warn": "33", "title": "1;36"}


class Page:
    """Lines in the making, `width` characters wide.

    Names in columns are `shortened` where they have no room, or else whole in lines that are longer than that.
    """

    def __init__(self, width: int = WIDTH, *, coloured: bool = False, shortened: bool = False) -> None:
        self.width = width
        self.is_shortened = shortened
        self._coloured = coloured
        self._lines: list[str] = []

    @property
    def names_width(self) -> int:
        """How much of a line names may take that stand within text."""
        return max(round(self.width * _NAMES), _NARROWEST)

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def line(self, *parts: Part, indent: int = 0) -> None:
        self._lines.append((" " * indent + "".join(map(self._painted, parts))).rstrip())

    def title(self, text: str, rest: str = "") -> None:
        """An empty line, then the heading of a part of the page, and what there is to say beside it."""
        first, *more = self._wrapped(f"{text}  {rest}".rstrip(), self.width, GAP)
        self._lines.append("")
        self.line(Cell(text, "title"), first.removeprefix(text))
        for line in more:
            self.line(line, indent=GAP)

    def paragraph(self, part: Part, *, indent: int = 0, hanging: int = 0) -> None:
        """Text over as many lines as it takes; those after the first are indented by `hanging` more."""
        for number, line in enumerate(self._wrapped(text_of(part), self.width - indent, hanging)):
            self.line(Cell(line, style_of(part)), indent=indent + (hanging if number else 0))

    def caveats(self, caveats: Sequence[Caveat]) -> None:
        """Write what an answer could not know or does not do; nothing without caveats."""
        if caveats:
            self.title("Caveats")
        for caveat in caveats:
            self.paragraph(caveat.message, indent=2, hanging=2)

    def columns(self, rows: Sequence[Sequence[Part]], *, indent: int = 0, right: Iterable[int] = ()) -> None:
        """Aligned rows; columns numbered in `right` end evenly. Above them is said what all names share that lack it.

        What a row says beyond its columns, as in `and 3 more`, is its last part and need not fit into a column.
        """
        cleaned = [[_clean(part) for part in row] for row in rows]
        table = Table(cleaned, self.width - indent, frozenset(right), shortened=self.is_shortened)
        for note in table.naming.notes:
            self.paragraph(Cell(note, "dim"), indent=indent, hanging=GAP)
        for line in table.lines():
            self._lines.append((" " * indent + "".join(map(self._painted, line))).rstrip())

    def _wrapped(self, text: str, width: int, hanging: int) -> list[str]:
        text = escape(text, _LONGEST)
        if len(text) <= width:
            return [text]
        wrapper = textwrap.TextWrapper(
            width=max(width, _NARROWEST), subsequent_indent=" " * hanging, break_on_hyphens=False
        )
        return [line.removeprefix(" " * hanging) if number else line for number, line in enumerate(wrapper.wrap(text))]

    def _painted(self, part: Part) -> str:
        text, style = escape(text_of(part), _LONGEST), style_of(part)
        code = _CODES[style]
        return f"\x1b[{code}m{text}\x1b[0m" if code and text and self._coloured else text


def _clean(part: Part) -> Part:
    """The part, with nothing in it that a terminal would act on."""
    if isinstance(part, Names):
        return part._replace(names=tuple(map(_clean_name, part.names)))
    if isinstance(part, Name):
        return _clean_name(part)
    if isinstance(part, Cell):
        return Cell(escape(part.text, _LONGEST), part.style)
    return escape(part, _LONGEST)


def _clean_name(name: Name) -> Name:
    before, after = escape(name.before, _LONGEST), escape(name.after, _LONGEST)
    return Name(escape(name.name, _LONGEST), name.kind, name.style, before, after)
