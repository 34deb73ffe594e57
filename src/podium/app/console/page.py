"""Text for people: lines, paragraphs and aligned columns, in colour where it is wanted.

Everything is made harmless here: whatever a terminal would act on is written as an escape sequence.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podium.api.errors import escape

WIDTH = 100
"""The widest that a page gets."""

_LONGEST = 10_000
_GAP = 2
_NARROWEST = 16
_FIGURES = 60
_CODES = {"": "", "bold": "1", "dim": "2", "good": "32", "bad": "31", "warn": "33", "title": "1;36"}


class Cell(NamedTuple):
    """A piece of text, and how it looks: bold, dim, good, bad, warn, title or "" for plain."""

    text: str
    style: str = ""


Part = Cell | str


class Page:
    """Lines in the making, `width` characters wide."""

    def __init__(self, width: int = WIDTH, *, coloured: bool = False) -> None:
        self.width = width
        self._coloured = coloured
        self._lines: list[str] = []

    @property
    def name_width(self) -> int:
        """How long a name may be where it stands beside columns of figures."""
        return max(self.width - _FIGURES, _NARROWEST)

    @property
    def short_name_width(self) -> int:
        """How long each of two names may be where they stand beside columns of figures."""
        return self.width // 4

    @property
    def text(self) -> str:
        """All lines, each ended."""
        return "".join(f"{line}\n" for line in self._lines)

    def line(self, *parts: Part, indent: int = 0) -> None:
        """One line, as long as its parts are."""
        self._lines.append((" " * indent + "".join(self._painted(_cell(part)) for part in parts)).rstrip())

    def title(self, text: str, rest: str = "") -> None:
        """An empty line, then the heading of a part of the page, and what there is to say beside it."""
        first, *more = self._wrapped(f"{text}  {rest}".rstrip(), self.width, _GAP)
        self._lines.append("")
        self.line(Cell(text, "title"), first.removeprefix(text))
        for line in more:
            self.line(line, indent=_GAP)

    def paragraph(self, part: Part, *, indent: int = 0, hanging: int = 0) -> None:
        """Text over as many lines as it takes; those after the first are indented by `hanging` more."""
        cell = _cell(part)
        for number, line in enumerate(self._wrapped(cell.text, self.width - indent, hanging)):
            self.line(Cell(line, cell.style), indent=indent + (hanging if number else 0))

    def columns(self, rows: Sequence[Sequence[Part]], *, indent: int = 0, right: Iterable[int] = ()) -> None:
        """Aligned rows. The last column wraps where it does not fit; those numbered in `right` end evenly.

        A cell of more than half a line pushes only its own row aside.
        """
        cells = [[_clean(_cell(part)) for part in row] for row in rows]
        count = max((len(row) for row in cells), default=0)
        widest = self.width // 2
        widths = [
            max((len(row[i].text) for row in cells if i < len(row) and len(row[i].text) <= widest), default=0)
            for i in range(count)
        ]
        to_the_right = frozenset(right)
        for row in cells:
            line, used = "", indent
            for number, cell in enumerate(row[:-1]):
                space = " " * (widths[number] - len(cell.text))
                painted = self._painted(cell)
                line += (space + painted if number in to_the_right else painted + space) + " " * _GAP
                used += max(widths[number], len(cell.text)) + _GAP
            self._last(line, used, row[-1], indent, widths[len(row) - 1] if len(row) - 1 in to_the_right else 0)

    def _last(self, line: str, used: int, cell: Cell, indent: int, width: int) -> None:
        """End a row with its last cell, over several lines where one is not enough."""
        left = max(self.width - used, _NARROWEST)
        first, *rest = self._wrapped(cell.text.rjust(width), left, 0) or [""]
        self._lines.append((" " * indent + line + self._painted(Cell(first, cell.style))).rstrip())
        for text in rest:
            self.line(Cell(text, cell.style), indent=used)

    def _wrapped(self, text: str, width: int, hanging: int) -> list[str]:
        text = escape(text, _LONGEST)
        if len(text) <= width:
            return [text]
        wrapper = textwrap.TextWrapper(
            width=max(width, _NARROWEST), subsequent_indent=" " * hanging, break_on_hyphens=False
        )
        return [line.removeprefix(" " * hanging) if number else line for number, line in enumerate(wrapper.wrap(text))]

    def _painted(self, cell: Cell) -> str:
        text = _clean(cell).text
        code = _CODES[cell.style]
        return f"\x1b[{code}m{text}\x1b[0m" if code and text and self._coloured else text


def shortened(text: str, width: int) -> str:
    """The text, with its middle left out where it is longer than `width`."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def listed(names: Sequence[str], most: int) -> str:
    """The names in one line, those beyond `most` counted."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def fitted(names: Sequence[str], width: int) -> str:
    """As many of the names as `width` has room for, at least one, with those beyond counted."""
    used, most = 0, 0
    for name in names:
        used += len(name) + 2
        rest = len(names) - most - 1
        if used - 2 + (len(f" and {rest:,} more") if rest else 0) > width:
            break
        most += 1
    if most == len(names):
        return ", ".join(names)
    more = f" and {len(names) - max(most, 1):,} more" if len(names) > 1 else ""
    return (", ".join(names[:most]) or shortened(names[0], max(width - len(more), 8))) + more


def counted(number: int, noun: str) -> str:
    """The number with its noun, in the plural where it needs to be."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cell(part: Part) -> Cell:
    return part if isinstance(part, Cell) else Cell(part)


def _clean(cell: Cell) -> Cell:
    return Cell(escape(cell.text, _LONGEST), cell.style)
