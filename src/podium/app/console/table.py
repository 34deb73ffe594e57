"""Tables laid out in columns that fit the line width where possible.

A table that fits is not changed. Otherwise, in this order: parts that all names share are removed and reported above
the table; text is wrapped; in tables with many columns, the last ones move to a second line; names are shortened and
stay distinct; columns that still do not fit move below their row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import NamedTuple

from msgspec import Struct

from podium.app.console.cells import Cell, Name, Names, Part, by_key, fitted, listed, style_of, text_of

ELLIPSIS = "…"

_SEPARATORS = "-./_ "
_DOMAIN = "."
# Shorter shared parts are not worth the line that reports them.
_LEAST_SHARED = 6


class Shared(NamedTuple):
    """The prefix and suffix that all names of a kind share, and that are omitted from each name."""

    beginning: str = ""
    end: str = ""

    def rest_of(self, name: str) -> str:
        """Return the name without the shared parts; an ellipsis replaces a shared prefix."""
        rest = name[len(self.beginning) : len(name) - len(self.end)]
        return f"{ELLIPSIS}{rest}" if self.beginning else rest

    def note(self, kind: str) -> str:
        """Return a sentence such as `nodes end in .eu-west-1.compute.internal`; "" if nothing is shared."""
        parts = [f"begin with {self.beginning}"] if self.beginning else []
        if self.end:
            parts.append(f"end in {self.end}")
        return f"{kind} {' and '.join(parts)}" if parts else ""


def shared_domain(names: Collection[str]) -> Shared:
    """Return the longest domain suffix, from a dot on, that all names share. A single name has one, too."""
    # At least the first character of each name stays.
    alike = _common_prefix([name[:0:-1] for name in names])[::-1]
    end = alike[alike.find(_DOMAIN) :]
    return Shared(end=end if end.startswith(_DOMAIN) and len(end) >= _LEAST_SHARED else "")


def shared_parts(names: Collection[str]) -> Shared:
    """Return the shared domain, and the shared prefix up to a separator, such as `default/web-5d4f8c7b9-`."""
    end = shared_domain(names).end
    # At least the last character of each name stays.
    alike = _common_prefix([name.removesuffix(end)[:-1] for name in names]) if len({*names}) > 1 else ""
    length = 1 + max(alike.rfind(separator) for separator in _SEPARATORS)
    return Shared(alike[:length] if length >= _LEAST_SHARED else "", end)


def cut_apart(names: Iterable[str], width: int) -> dict[str, str]:
    """Return distinct forms of the names with at most `width` characters.

    All names lose their middle, else their beginning, else all but what follows their common prefix: the first way that
    keeps them distinct. They stay whole if there is none.
    """
    different = sorted(set(names))
    begin = len(_common_prefix(different))
    ways: list[Callable[[str], str]] = [
        lambda name: without_middle(name, width),
        lambda name: f"{ELLIPSIS}{name[1 - width :]}",
        lambda name: f"{ELLIPSIS}{name[begin : begin + width - 2]}{ELLIPSIS}",
    ]
    for shortened in ways:
        forms = {name: shortened(name) if len(name) > width else name for name in different}
        if len({*forms.values()}) == len(forms):
            return forms
    return {name: name for name in different}


def without_middle(name: str, width: int) -> str:
    """Return the name, without its middle if it is longer than `width`."""
    if len(name) <= width:
        return name
    head = (width - 1) // 2
    return f"{name[:head]}{ELLIPSIS}{name[len(name) - (width - 1 - head) :]}"


def _common_prefix(names: Collection[str]) -> str:
    """Return the prefix that all names share."""
    first, last = min(names, default=""), max(names, default="")
    length = next((place for place, char in enumerate(first) if place >= len(last) or char != last[place]), len(first))
    return first[:length]


_NOTHING = Shared()


class Naming(Struct, frozen=True):
    """A way to show names: by kind, the shared parts that are omitted, and the short forms of the rests."""

    shared: Mapping[str, Shared] = {}
    short: Mapping[str, Mapping[str, str]] = {}

    @property
    def notes(self) -> list[str]:
        """The notes above the table about what names share."""
        return [note for kind, shared in self.shared.items() if (note := shared.note(kind))]

    def shown(self, name: Name) -> str:
        """Return a name as shown, with the text around it."""
        if not name.name:
            return name.text
        rest = self.shared.get(name.kind, _NOTHING).rest_of(name.name)
        short = self.short.get(name.kind)
        return f"{name.before}{rest if short is None else short[rest]}{name.after}"

    def text(self, part: Part, most: int | None = None) -> str:
        """Return the text of a part; of several names it has at most ``most``, and counts the others."""
        if isinstance(part, Name):
            return self.shown(part)
        if isinstance(part, Names):
            most = min((limit for limit in (most, part.most) if limit is not None), default=None)
            return listed([self.shown(name) for name in part.names], most)
        return text_of(part)

    def fitted(self, part: Part, width: int) -> str:
        """Return the text of a part within a width: fewer names, with the others counted; other parts in full."""
        if isinstance(part, Names) and part.names:
            return fitted([self.shown(name) for name in part.names], width, part.most)
        return self.text(part)


NO_NAMING = Naming()
"""All names whole."""

GAP = 2

# The share of a line to which text is narrowed before names are shortened, and the minimum in characters.
_TEXT_SHARE = 0.4
_TEXT = 24
# The width of text if lines may be longer than the page.
_READABLE = 60
# Names are shortened before words up to this length are broken.
_WORD = 48
# Names are shortened before a part with several names shows fewer than this.
_NAMES = 3
# The width of names before text is narrowed further, and the minimum width of everything.
_NAME = 20
_NARROWEST = 16
# Rows with this many columns get a second line before single names are shortened.
_MANY = 4
# The indentation of columns below their row.
_BELOW = 4
# Kubernetes' names are shorter, namespace included; longer text does not widen a column.
_LONGEST = 400

Row = Sequence[Part]
Line = list[Cell]


class _Compression(Struct, frozen=True):
    """The minimum width of text (None: text is not wrapped), of names once shortened, and how many a part shows."""

    text: int | None
    names: int
    name: int | None = None

    def least(self, part: Part, naming: Naming) -> int:
        """Return the minimum width of a part."""
        text = naming.text(part)
        width = len(text)
        if isinstance(part, Name | Names) and self.name is not None:
            return min(width, self.name)
        if isinstance(part, Names):
            return min(width, max(self.text or 0, len(naming.text(part, self.names))))
        if isinstance(part, Name):
            return width
        if self.text is None or width <= self.text:
            return width
        return max(self.text, min(max(map(len, text.split()), default=0), _WORD))


@dataclass(slots=True)
class TextTable:
    """Rows of parts for lines of `room` characters; the columns numbered in `right` are right-aligned.

    Unless names may be `shortened`, they stay whole, and lines can be longer than that.
    """

    rows: Sequence[Row]
    room: int
    right: Collection[int] = ()
    shortened: bool = True
    naming: Naming = field(init=False, default=NO_NAMING)
    _count: int = field(init=False)
    _groups: list[list[int]] = field(init=False)
    _width: list[int] = field(init=False)

    def __post_init__(self) -> None:
        names = by_key((name.kind, name.name) for part in chain.from_iterable(self.rows) for name in _names_in(part))
        self._count = max(map(len, self.rows), default=0)
        ways = list(self._ways(names))
        _, press, _ = next((way for way in ways if self._lay(*way)), ways[-1])
        if press.name is not None:
            self._shorten(names)

    def _lay(self, naming: Naming, press: _Compression, lines: int) -> bool:
        """Lay out the table in a way, and return whether it fits."""
        self.naming = naming
        least, wanted = self._widths(press)
        self._groups = _grouped(least, self.room) if self.shortened else [list(range(self._count))]
        self._width = [min(width, self.room - _BELOW) for width in least] if self.shortened else least
        is_fit = len(self._groups) <= lines
        for number, columns in enumerate(self._groups):
            room = self.room - (_BELOW if number else 0)
            is_fit = is_fit and _total([least[column] for column in columns]) <= room
            self._spread(columns, wanted, room)
        return is_fit

    def _ways(self, names: Mapping[str, Sequence[str]]) -> Iterator[tuple[Naming, _Compression, int]]:
        """Yield the ways to show the table, the best first: each with the number of lines that a row may take.

        The last way is taken if none fits.
        """
        text = max(_TEXT, round(self.room * _TEXT_SHARE))
        choices = [NO_NAMING]
        for find in (shared_domain, shared_parts) if self.shortened else ():
            choices.append(Naming({kind: find(of_kind) for kind, of_kind in names.items()}))
        presses = [_Compression(None, _NAMES), _Compression(text, _NAMES), _Compression(text, 1)]
        yield from ((naming, press, 1) for press in presses for naming in choices)
        if not self.shortened:
            yield NO_NAMING, _Compression(_READABLE, 1), 1
            return
        if self._count >= _MANY:
            yield from ((naming, presses[-1], 2) for naming in choices)
        for text_width, name_width in ((text, _NAME), (_TEXT, _NAME), (_NARROWEST, _NARROWEST)):
            yield choices[-1], _Compression(text_width, 1, name_width), 1

    def _widths(self, press: _Compression) -> tuple[list[int], list[int]]:
        """Return the minimum and the full width of each column."""
        least, wanted = [0] * self._count, [0] * self._count
        for row in self.rows:
            for column, part in enumerate(row):
                full = len(self.naming.text(part))
                width = full if column in self.right else press.least(part, self.naming)
                if self._is_free(row, column):
                    full = width = min(full, _NARROWEST)
                wanted[column] = max(wanted[column], min(full, _LONGEST))
                least[column] = max(least[column], min(width, _LONGEST))
        return least, wanted

    def _is_free(self, row: Row, column: int) -> bool:
        """Return whether the part ends its row before the last column, so that it may use the rest of the line."""
        return column == len(row) - 1 and len(row) < self._count

    def _spread(self, columns: Sequence[int], wanted: Sequence[int], room: int) -> None:
        """Give the columns of a line an equal share of the rest of it, up to their full widths."""
        left = room - _total([self._width[column] for column in columns])
        while left > 0 and (wanting := [column for column in columns if self._width[column] < wanted[column]]):
            share = max(left // len(wanting), 1)
            for column in wanting[:left]:
                more = min(share, wanted[column] - self._width[column])
                self._width[column] += more
                left -= more

    def _shorten(self, names: Mapping[str, Sequence[str]]) -> None:
        """Cut the names of each kind to the narrowest column in which one does not fit."""
        rooms: dict[str, int] = {}
        for part, width in chain.from_iterable(zip(row, self._width, strict=False) for row in self.rows):
            for name in _names_in(part)[:1]:
                if len(self.naming.shown(name)) > width:
                    room = max(width - len(name.before) - len(name.after), _NARROWEST // 2)
                    rooms[name.kind] = min(rooms.get(name.kind, room), room)
        shared = self.naming.shared
        short = {kind: cut_apart(map(shared[kind].rest_of, names[kind]), room) for kind, room in rooms.items()}
        self.naming = Naming(shared, short)

    def lines(self) -> Iterator[Line]:
        """Yield the lines of the table, each a sequence of pieces of text."""
        texts = [[self._text(row, column) for column in range(len(row))] for row in self.rows]
        widths = [0] * self._count
        for row, cells in zip(self.rows, texts, strict=True):
            for column, lines in enumerate(cells):
                if not self._is_free(row, column):
                    widths[column] = max(widths[column], *map(len, lines))
        for row, cells in zip(self.rows, texts, strict=True):
            groups = [[column for column in columns if column < len(row)] for columns in self._groups]
            is_said = [any(text_of(row[column]) for column in group) for group in groups]
            for number, group in enumerate(groups):
                if is_said[number] or (not number and not any(is_said)):
                    yield from self._lines(row, cells, group, widths, _BELOW if number else 0)

    def _text(self, row: Row, column: int) -> list[str]:
        """Return the lines of a cell."""
        width = self._width[column]
        if self._is_free(row, column):
            number, group = next(each for each in enumerate(self._groups) if column in each[1])
            before = [self._width[other] for other in group if other < column]
            width = max(width, self.room - (_BELOW if number else 0) - _total([*before, 0]))
        text = self.naming.fitted(row[column], width)
        if len(text) <= width:
            return [text]
        return textwrap.wrap(text, max(width, 1), break_on_hyphens=False, break_long_words=self.shortened) or [""]

    def _lines(
        self, row: Row, texts: Sequence[list[str]], columns: Sequence[int], widths: Sequence[int], indent: int
    ) -> Iterator[Line]:
        styles = [style_of(part) for part in row]
        for pieces in zip_longest(*(texts[column] for column in columns), fillvalue=""):
            line = [Cell(" " * indent)]
            for column, text in zip(columns, pieces, strict=True):
                pad, cell = Cell(" " * (widths[column] - len(text))), Cell(text, styles[column])
                line += [pad, cell] if column in self.right else [cell, pad]
                line.append(Cell(" " * GAP))
            yield line


def _names_in(part: Part) -> Sequence[Name]:
    """Return the names in a part, but not empty ones."""
    names = part.names if isinstance(part, Names) else (part,) if isinstance(part, Name) else ()
    return [name for name in names if name.name]


def _grouped(widths: Sequence[int], room: int) -> list[list[int]]:
    """Return the columns of each line of a row."""
    groups: list[list[int]] = [[]]
    used = 0
    for column, width in enumerate(widths):
        if groups[-1] and used + width > room:
            groups.append([])
            used = _BELOW
        groups[-1].append(column)
        used += width + GAP
    return groups


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * max(len(widths) - 1, 0)
