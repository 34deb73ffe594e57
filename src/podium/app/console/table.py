"""Tables laid out in columns that fit the line width where possible.

A table that fits is not changed. Otherwise, in this order: parts that all names share are removed and reported above
the table; text is wrapped; in tables with many columns, the last ones move to a second line; single names are shortened
and stay distinct; columns that still do not fit move below their row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
# Each round distinguishes names that differ one line length further on; Kubernetes' names end before the last.
_ROUNDS = 32


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
    different = sorted(set(names))
    if not different:
        return Shared()
    alike = _alike([name[::-1] for name in different])[::-1] if len(different) > 1 else different[0][1:]
    place = alike.find(_DOMAIN)
    while place >= 0:
        end = alike[place:]
        if len(end) < _LEAST_SHARED:
            break
        if all(len(name) > len(end) for name in different):
            return Shared(end=end)
        place = alike.find(_DOMAIN, place + 1)
    return Shared()


def shared_parts(names: Collection[str]) -> Shared:
    """Return the shared domain, and the shared prefix up to a separator, such as `default/web-5d4f8c7b9-`."""
    end = shared_domain(names).end
    rests = sorted({name.removesuffix(end) for name in names})
    alike = _alike(rests) if len(rests) > 1 else ""
    length = 1 + max(alike.rfind(separator) for separator in _SEPARATORS)
    while length and any(len(rest) <= length for rest in rests):
        length = 1 + max(alike.rfind(separator, 0, length - 1) for separator in _SEPARATORS)
    return Shared(alike[:length] if length >= _LEAST_SHARED else "", end)


def cut_apart(names: Iterable[str], width: int) -> dict[str, str]:
    """Return distinct forms of the names with at most `width` characters; a name without such a form stays whole.

    The middle of a name is omitted if the result is unique. Names that would collide lose their common prefix instead.
    """
    different = sorted(set(names))
    forms = {name: without_middle(name, width) for name in different}
    for _ in range(_ROUNDS):
        clashes = [group for group in _by_form(forms) if len(group) > 1]
        if not clashes:
            return forms
        for group in clashes:
            forms |= _distinguished(group, width)
    for group in _by_form(forms):
        if len(group) > 1:
            forms |= {name: name for name in group}
    # A whole name may look like the short form of another.
    alike = any(len(group) > 1 for group in _by_form(forms))
    return {name: name for name in different} if alike else forms


def without_middle(name: str, width: int) -> str:
    """Return the name, without its middle if it is longer than `width`."""
    if len(name) <= width:
        return name
    head = (width - 1) // 2
    return f"{name[:head]}{ELLIPSIS}{name[len(name) - (width - 1 - head) :]}"


def _alike(names: Collection[str]) -> str:
    first, last = min(names), max(names)
    length = next((place for place, char in enumerate(first) if place >= len(last) or char != last[place]), len(first))
    return first[:length]


def _by_form(forms: dict[str, str]) -> list[list[str]]:
    groups = by_key((form, name) for name, form in forms.items())
    return list(groups.values())


def _distinguished(group: list[str], width: int) -> dict[str, str]:
    """Return the names from their first difference on, with the start of their common prefix if there is space."""
    begin = len(_alike(group))
    longest = max(map(len, group)) - begin
    if longest < width:
        # All ends are shown whole, preceded by as much of the prefix as fits.
        head = width - 1 - longest
        return {name: f"{name[:head]}{ELLIPSIS}{name[begin:]}" for name in group}
    window = max(width - 2, 1)
    before, end = ELLIPSIS if begin else "", begin + window
    return {name: f"{before}{name[begin:end]}{ELLIPSIS if len(name) > end else ''}" for name in group}


_NOTHING = Shared()


class Naming(Struct, frozen=True):
    """A way to show names: by kind, the shared parts that are omitted, and the short forms of the rests."""

    shared: Mapping[str, Shared] = {}
    short: Mapping[str, Mapping[str, str]] = {}
    names: Mapping[str, Sequence[str]] = {}

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

    def text(self, part: Part) -> str:
        if isinstance(part, Name):
            return self.shown(part)
        if isinstance(part, Names):
            return text_of(part._replace(names=tuple(Name(self.shown(name), name.kind) for name in part.names)))
        return text_of(part)

    def fitted(self, part: Part, width: int) -> str:
        """Return the text of a part within a width: fewer names, with the others counted; other parts in full."""
        if isinstance(part, Names) and part.names:
            return fitted([self.shown(name) for name in part.names], width, part.most)
        return self.text(part)

    def least(self, part: Part, number: int) -> int:
        """Return the width of that many of several names, with the others counted; 0 for other parts."""
        if not isinstance(part, Names) or not part.names:
            return 0
        most = number if part.most is None else min(number, part.most)
        first = [self.shown(name) for name in part.names[: most + 1]]
        # The others are only counted.
        return len(listed([*first, *[""] * (len(part.names) - len(first))], most))

    def shortened(self, rooms: Mapping[str, int]) -> Naming:
        """Return a naming that cuts the names of each kind to its width in `rooms`; the names stay distinct."""
        rests = {kind: map(self.shared.get(kind, _NOTHING).rest_of, self.names[kind]) for kind in rooms}
        short = {kind: cut_apart(rests[kind], room) for kind, room in rooms.items()}
        return Naming(self.shared, short, self.names)


NO_NAMING = Naming()
"""All names whole."""


def namings(rows: Sequence[Sequence[Part]]) -> Iterator[Naming]:
    """Yield the lossless ways to show names, ever shorter: whole, without domains, without shared parts.

    Kinds are shortened one by one, those with the longest shared parts first.
    """
    found_names: dict[str, dict[str, None]] = {}
    for part in chain.from_iterable(rows):
        for name in part.names if isinstance(part, Names) else (part,):
            if isinstance(name, Name) and name.name:
                found_names.setdefault(name.kind, {})[name.name] = None
    names = {kind: list(of_kind) for kind, of_kind in found_names.items()}
    shared: dict[str, Shared] = {}
    yield Naming(names=names)
    for find in (shared_domain, shared_parts):
        found = {kind: find(of_kind) for kind, of_kind in names.items()}
        for kind in sorted(found, key=lambda kind: (-len(found[kind].beginning + found[kind].end), kind)):
            if found[kind] != shared.get(kind, _NOTHING):
                shared = {**shared, kind: found[kind]}
                yield Naming(shared, names=names)


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


class _Widths(Struct, frozen=True):
    """For each column its full width, the width that suffices, and its minimum width."""

    wanted: list[int]
    enough: list[int]
    least: list[int]


class _Compression(Struct, frozen=True):
    """The minimum width of text, the number of names shown in a part, and the width of names once shortened."""

    text: int
    names: int
    name: int | None = None

    def least(self, part: Part, text: str, naming: Naming) -> int:
        """Return the minimum width of a part with this text."""
        width = len(text)
        if isinstance(part, Name):
            return width if self.name is None else min(width, self.name)
        if isinstance(part, Names):
            return min(width, max(self.text, naming.least(part, self.names)) if self.name is None else self.name)
        if width <= self.text:
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
            widths = self._widths(NO_NAMING, _Compression(_READABLE, 1))
            chosen = NO_NAMING, widths.least, widths.wanted
        self.naming, least, wanted = chosen
        self._groups = [list(range(len(wanted)))]
        self._width = _spread(least, wanted, self.room)

    def _tried(self, choices: Sequence[Naming], text: int) -> Iterator[tuple[Naming, list[int], list[int]]]:
        """Yield the ways to show the table, the best first: each with the required and the full column widths."""
        several = []
        for naming in choices:
            widths = self._widths(naming, _Compression(text, _NAMES))
            several.append((naming, widths))
            yield naming, widths.enough, widths.wanted
        for naming, widths in several:
            yield naming, widths.least, widths.wanted
        for naming in choices:
            widths = self._widths(naming, _Compression(text, 1))
            yield naming, widths.least, widths.wanted

    def lines(self) -> Iterator[Line]:
        """Yield the lines of the table, each a sequence of pieces of text."""
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
        """Return whether the part ends its row before the last column, so that it may use the rest of the line."""
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
        styles = [style_of(part) for part in row]
        for pieces in zip_longest(*(texts[column] for column in columns), fillvalue=""):
            line = [Cell(" " * indent)]
            for column, text in zip(columns, pieces, strict=True):
                pad, cell = Cell(" " * (widths[column] - len(text))), Cell(text, styles[column])
                line += [pad, cell] if column in self.right else [cell, pad]
                line.append(Cell(" " * GAP))
            yield line

    def _widths(self, naming: Naming, press: _Compression) -> _Widths:
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
        """Lay out rows with many columns in two lines; return False if single names had to be shortened for that."""
        for naming in choices:
            widths = self._widths(naming, _Compression(text, 1))
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
        """Set the widths of the columns of each line."""
        self._width, self._groups = [0] * len(least), groups
        for number, columns in enumerate(groups):
            room = self.room - (_BELOW if number else 0)
            given = _spread([least[column] for column in columns], [wanted[column] for column in columns], room)
            for column, width in zip(columns, given, strict=True):
                self._width[column] = width

    def _cut(self, naming: Naming, text: int) -> None:
        """Shorten single names, and move columns that still do not fit below their row."""
        order = [(text, _NAME), (_TEXT, _NAME), (_NARROWEST, _NARROWEST), (_TEXT, _NARROWEST)]
        tried = [self._widths(naming, _Compression(text_width, 1, name)) for text_width, name in order]
        widths = next((widths for widths in tried if _total(widths.least) <= self.room), tried[-1])
        least = [min(width, self.room - _BELOW) for width in widths.least]
        self._lay(_grouped(least, self.room), least, widths.wanted)
        # By kind, the maximum length of names: the narrowest column in which one does not fit.
        rooms: dict[str, int] = {}
        for part, width in chain.from_iterable(zip(row, self._width, strict=False) for row in self.rows):
            for name in part.names[:1] if isinstance(part, Names) else (part,):
                if isinstance(name, Name) and len(naming.shown(name)) > width:
                    room = max(width - len(name.before) - len(name.after), _NARROWEST // 2)
                    rooms[name.kind] = min(rooms.get(name.kind, room), room)
        self.naming = naming.shortened(rooms)


def _grouped(widths: Sequence[int], room: int) -> list[list[int]]:
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
    """Return the width of each column: its minimum, and an equal share of the rest up to its full width."""
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
    """Return the text wrapped to a width. Longer words stay whole unless `breaks` is set."""
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False, break_long_words=breaks) or [""]
