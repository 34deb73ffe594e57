"""Rows laid out in columns that fit into a line, as far as they can.

Nothing is done to a table that has room. Where it has not, its names lose what they share, which is said above the
table; then text takes several lines; then, of rows with many columns, the last go below; then single names are
shortened so that no two are alike; and what has no room even so goes below its row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from podium.app.console.cells import Cell, Name, Names, Part, style_of, text_of
from podium.app.console.naming import NO_NAMING, Naming, namings

GAP = 2

# Of a line, what text is pressed to before names are shortened for it, and no less than that many characters.
_TEXT_SHARE = 0.4
_TEXT = 24
# What it is pressed to where lines may get longer than the page.
_READABLE = 60
# A word up to that length is not broken before names are shortened for it.
_WORD = 48
# Of several names in one part, how many have room before names are shortened for that.
_NAMES = 3
# What names are shortened to before text is pressed further, and what all is pressed to at last.
_NAME = 20
_NARROWEST = 16
# Rows of so many columns have a second line before single names are shortened.
_MANY = 4
# How far what goes below its row is set in.
_BELOW = 4
# Names of Kubernetes are shorter, namespace included; what is longer makes no column wider.
_LONGEST = 400

Row = Sequence[Part]
Line = list[Cell]


@dataclass(frozen=True, slots=True)
class _Widths:
    """How wide each column would be if there were room, with how much it is content, and how narrow it can be."""

    wanted: list[int]
    enough: list[int]
    least: list[int]


@dataclass(frozen=True, slots=True)
class _Press:
    """How narrow text can be, how many names have room where there are several, and, once they are shortened, each."""

    text: int
    names: int
    name: int | None = None

    def least(self, part: Part, text: str, naming: Naming) -> int:
        """How narrow a part can be that says this text."""
        width = len(text)
        if isinstance(part, Name):
            return width if self.name is None else min(width, self.name)
        if isinstance(part, Names):
            return min(width, max(self.text, naming.least(part, self.names)) if self.name is None else self.name)
        if width <= self.text:
            return width
        return max(self.text, min(max(map(len, text.split()), default=0), _WORD))


@dataclass(slots=True)
class Table:
    """Rows of parts for lines of `room` characters; the columns numbered in `right` end evenly.

    Where names are not to be `shortened` they stay whole, and lines get longer than that.
    """

    rows: Sequence[Row]
    room: int
    right: Collection[int] = ()
    shortened: bool = True
    naming: Naming = field(init=False, default=NO_NAMING)
    _groups: list[list[int]] = field(init=False)
    _width: list[int] = field(init=False)

    def __post_init__(self) -> None:
        text = max(_TEXT, round(self.room * _TEXT_SHARE))
        choices = list(namings(self.rows)) if self.shortened else [NO_NAMING]
        chosen = next((choice for choice in self._tried(choices, text) if _total(choice[1]) <= self.room), None)
        if chosen is None and self.shortened:
            if not self._laid_in_two(choices, text):
                self._cut(choices[-1], text)
            return
        if chosen is None:
            widths = self._widths(NO_NAMING, _Press(_READABLE, 1))
            chosen = NO_NAMING, widths.least, widths.wanted
        self.naming, least, wanted = chosen
        self._groups = [list(range(len(wanted)))]
        self._width = _spread(least, wanted, self.room)

    def _tried(self, choices: Sequence[Naming], text: int) -> Iterator[tuple[Naming, list[int], list[int]]]:
        """The ways to show the table, the best first: each with what its columns need, and what they would take."""
        several = []
        for naming in choices:
            widths = self._widths(naming, _Press(text, _NAMES))
            several.append((naming, widths))
            yield naming, widths.enough, widths.wanted
        for naming, widths in several:
            yield naming, widths.least, widths.wanted
        for naming in choices:
            widths = self._widths(naming, _Press(text, 1))
            yield naming, widths.least, widths.wanted

    def lines(self) -> Iterator[Line]:
        """The table, line by line: pieces of text that stand one behind the other."""
        texts = [
            [self._text(part, column, is_free=self._is_free(row, column)) for column, part in enumerate(row)]
            for row in self.rows
        ]
        widths = [0] * len(self._width)
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

    def _is_free(self, row: Row, column: int) -> bool:
        """Whether that part ends a row before the last column, and has the rest of the line for itself."""
        return column == len(row) - 1 and len(row) < len(self._width)

    def _text(self, part: Part, column: int, *, is_free: bool) -> list[str]:
        width = self._width[column]
        if is_free:
            group = next(columns for columns in self._groups if column in columns)
            before = [self._width[other] for other in group if other < column]
            width = max(width, self.room - _BELOW * (group is not self._groups[0]) - _total([*before, 0]))
        return _wrapped(self.naming.fitted(part, width), width, breaks=self.shortened)

    def _lines(
        self, row: Row, texts: Sequence[list[str]], columns: Sequence[int], widths: Sequence[int], indent: int
    ) -> Iterator[Line]:
        """Some columns of one row."""
        styles = [style_of(part) for part in row]
        for pieces in zip_longest(*(texts[column] for column in columns), fillvalue=""):
            line = [Cell(" " * indent)]
            for column, text in zip(columns, pieces, strict=True):
                pad, cell = Cell(" " * (widths[column] - len(text))), Cell(text, styles[column])
                line += [pad, cell] if column in self.right else [cell, pad]
                line.append(Cell(" " * GAP))
            yield line

    def _widths(self, naming: Naming, press: _Press) -> _Widths:
        count = max((len(row) for row in self.rows), default=0)
        wanted, enough, least = [0] * count, [0] * count, [0] * count
        for row in self.rows:
            for column, part in enumerate(row):
                text = naming.text(part)
                if column == len(row) - 1 and len(row) < count:
                    # It has the rest of the line.
                    text = text[:_NARROWEST]
                width = len(text) if column in self.right else press.least(part, text, naming)
                content = naming.least(part, press.names) if isinstance(part, Names) else len(text)
                wanted[column] = max(wanted[column], min(len(text), _LONGEST))
                enough[column] = max(enough[column], min(content, _LONGEST))
                least[column] = max(least[column], min(width, _LONGEST))
        return _Widths(wanted, enough, least)

    def _laid_in_two(self, choices: Sequence[Naming], text: int) -> bool:
        """Lay rows of many columns in two lines, if no single name has to be shortened then; whether that is so."""
        for naming in choices:
            widths = self._widths(naming, _Press(text, 1))
            groups = _grouped(widths.least, self.room)
            is_whole = all(
                _total([widths.least[column] for column in columns]) <= self.room - (_BELOW if number else 0)
                for number, columns in enumerate(groups)
            )
            if len(widths.least) >= _MANY and len(groups) == 2 and is_whole:
                self.naming = naming
                self._lay(groups, widths.least, widths.wanted)
                return True
        return False

    def _lay(self, groups: list[list[int]], least: Sequence[int], wanted: Sequence[int]) -> None:
        """Give the columns of each line their room."""
        self._width, self._groups = [0] * len(least), groups
        for number, columns in enumerate(groups):
            room = self.room - (_BELOW if number else 0)
            given = _spread([least[column] for column in columns], [wanted[column] for column in columns], room)
            for column, width in zip(columns, given, strict=True):
                self._width[column] = width

    def _cut(self, naming: Naming, text: int) -> None:
        """Shorten single names, and put below its row what has no room even so."""
        order = [(text, _NAME), (_TEXT, _NAME), (_NARROWEST, _NARROWEST), (_TEXT, _NARROWEST)]
        tried = [self._widths(naming, _Press(text_width, 1, name)) for text_width, name in order]
        widths = next((widths for widths in tried if _total(widths.least) <= self.room), tried[-1])
        least = [min(width, self.room - _BELOW) for width in widths.least]
        self._lay(_grouped(least, self.room), least, widths.wanted)
        self.naming = naming.shortened(_name_rooms(self.rows, self._width, naming))


def _name_rooms(rows: Sequence[Row], widths: Sequence[int], naming: Naming) -> Mapping[str, int]:
    """How long names of each kind may be: as long as the narrowest of the places where one does not fit."""
    rooms: dict[str, int] = {}
    for row in rows:
        for part, width in zip(row, widths, strict=False):
            for name in part.names[:1] if isinstance(part, Names) else (part,):
                if isinstance(name, Name) and len(naming.shown(name)) > width:
                    room = max(width - len(name.before) - len(name.after), _NARROWEST // 2)
                    rooms[name.kind] = min(rooms.get(name.kind, room), room)
    return rooms


def _grouped(widths: Sequence[int], room: int) -> list[list[int]]:
    """The columns of each line: as many as there is room for."""
    groups: list[list[int]] = [[]]
    used = 0
    for column, width in enumerate(widths):
        if groups[-1] and used + width > room:
            groups.append([])
            used = _BELOW
        groups[-1].append(column)
        used += width + GAP
    return groups


def _spread(least: Sequence[int], wanted: Sequence[int], room: int) -> list[int]:
    """What each column gets: what it has to have, and an equal share of what is left as far as it wants more."""
    given = list(least)
    left = room - _total(given)
    while left > 0 and (wanting := [column for column, width in enumerate(given) if width < wanted[column]]):
        share = max(left // len(wanting), 1)
        for column in wanting[:left]:
            more = min(share, wanted[column] - given[column])
            given[column] += more
            left -= more
    return given


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * max(len(widths) - 1, 0)


def _wrapped(text: str, width: int, *, breaks: bool) -> list[str]:
    """The text over lines of that width. Words that are longer stay whole unless it `breaks` them."""
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False, break_long_words=breaks) or [""]
