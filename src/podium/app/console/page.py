"""Pages of text: lines, paragraphs and aligned columns, optionally in colour.

Pages escape all text: control characters that a terminal would act on are written as escape sequences.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from podium.api.errors import escape
from podium.app.console.cells import Cell, Name, Names, Part, counted, fitted, listed, names_of, style_of, text_of
from podium.app.console.table import GAP, TextTable

if TYPE_CHECKING:
    from podium.api.basis import Caveat

__all__ = ["WIDTH", "Cell", "Name", "Names", "Page", "Part", "Section", "counted", "fitted", "listed", "names_of"]

WIDTH = 100
"""The width of a page that is not shown on a terminal, in characters."""

_LONGEST = 10_000
_NARROWEST = 16
_NAMES = 0.6
_CODES = {"": "", "bold": "1", "dim": "2", "good": "32", "bad": "31", "warn": "33", "title": "1;36"}


class Section(Struct, frozen=True):
    """A part of an answer: a title, rows of cells below ``headings``, which may be empty, and ``data`` for JSON.

    Text shows ``most`` rows, and how many more there are, of what ``noun``; pictures show all.
    """

    name: str
    title: str
    rows: tuple[tuple[Part, ...], ...]
    headings: tuple[str, ...] = ()
    rest: str = ""
    data: Any = None
    most: int | None = None
    noun: str = ""
    right: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        records: Iterable[Mapping[str, Any]],
        row: Callable[[Any], tuple[Part, ...]],
        headings: tuple[str, ...] = (),
        rest: str = "",
        **others: Any,
    ) -> Section:
        """Return the section with a row for each record, which is its data."""
        data = list(records)
        return cls(name, title, tuple(map(row, data)), headings, rest, data, **others)


class Page:
    """A page of lines with `width` characters.

    With `shortened`, names in columns are shortened if they do not fit; otherwise they stay whole in longer lines.
    """

    def __init__(self, width: int = WIDTH, *, coloured: bool = False, shortened: bool = False) -> None:
        self.width = width
        self.is_shortened = shortened
        self._coloured = coloured
        self._lines: list[str] = []

    @property
    def names_width(self) -> int:
        """The maximum width of names within text, in characters."""
        return max(round(self.width * _NAMES), _NARROWEST)

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def line(self, *parts: Part, indent: int = 0) -> None:
        self._lines.append((" " * indent + "".join(map(self._painted, parts))).rstrip())

    def title(self, text: str, rest: str = "") -> None:
        """Write an empty line, then the heading of a part of the page with a note beside it."""
        first, *more = self._wrapped(f"{text}  {rest}".rstrip(), self.width, GAP)
        self._lines.append("")
        self.line(Cell(text, "title"), first.removeprefix(text))
        for line in more:
            self.line(line, indent=GAP)

    def paragraph(self, part: Part, *, indent: int = 0, hanging: int = 0) -> None:
        """Write wrapped text; lines after the first are indented by `hanging` more."""
        for number, line in enumerate(self._wrapped(text_of(part), self.width - indent, hanging)):
            self.line(Cell(line, style_of(part)), indent=indent + (hanging if number else 0))

    def caveats(self, caveats: Sequence[Caveat]) -> None:
        """Write the caveats of an answer; nothing if there are none."""
        if caveats:
            self.title("Caveats")
        for caveat in caveats:
            self.paragraph(caveat.message, indent=2, hanging=2)

    def columns(self, rows: Sequence[Sequence[Part]], *, indent: int = 0, right: Iterable[int] = ()) -> None:
        """Write aligned rows; columns numbered in `right` are right-aligned. A note above gives omitted shared parts.

        Text beyond the columns, such as `and 3 more`, is the last part of a row and need not fit into a column.
        """
        cleaned = [[_clean(part) for part in row] for row in rows]
        table = TextTable(cleaned, self.width - indent, frozenset(right), shortened=self.is_shortened)
        for note in table.naming.notes:
            self.paragraph(Cell(note, "dim"), indent=indent, hanging=GAP)
        for line in table.lines():
            self.line(*line, indent=indent)

    def table(
        self,
        rows: Sequence[Sequence[Part]],
        headings: Sequence[str] = (),
        *,
        most: int | None = None,
        noun: str = "",
        indent: int = 2,
        right: Iterable[int] = (),
    ) -> None:
        """Write aligned rows below headings: of more than ``most`` rows the first, and how many follow.

        Columns of numbers end evenly, and those that are numbered in ``right``.
        """
        shown = rows[:most]
        head = [[Cell(heading, "dim") for heading in headings]] if headings else []
        cells = zip_longest(*shown, fillvalue="")
        numbers = {at for at, column in enumerate(cells) if all(isinstance(cell, int) or cell == "" for cell in column)}
        self.columns([*head, *shown], indent=indent, right=numbers.union(right))
        self.more(len(rows) - len(shown), noun, indent=indent)

    def sections(self, sections: Iterable[Section]) -> None:
        for section in sections:
            if section.rows:
                self.title(section.title, section.rest)
                self.table(section.rows, section.headings, most=section.most, noun=section.noun, right=section.right)

    def more(self, number: int, noun: str = "", *, indent: int = 2) -> None:
        """Write how many more of something there are; nothing for none."""
        if number > 0:
            text = counted(number, f"more {noun}") if noun else f"{number:,} more"
            self.line(Cell(f"and {text}", "dim"), indent=indent)

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
    """Return the part with control characters escaped."""
    if isinstance(part, Names):
        return part._replace(names=tuple(map(_clean_name, part.names)))
    if isinstance(part, Name):
        return _clean_name(part)
    if isinstance(part, Cell):
        return Cell(escape(part.text, _LONGEST), part.style)
    return escape(text_of(part), _LONGEST)


def _clean_name(name: Name) -> Name:
    before, after = escape(name.before, _LONGEST), escape(name.after, _LONGEST)
    return Name(escape(name.name, _LONGEST), name.kind, name.style, before, after)
