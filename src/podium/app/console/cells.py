"""What stands in the columns of a page: text, a name, or several names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

NODES = "nodes"
PODS = "pods"
WORKLOADS = "workloads"
BUDGETS = "budgets"
QUOTAS = "quotas"


_FEWEST_ALIKE = 3

Told = TypeVar("Told", bound=Hashable)


class Cell(NamedTuple):
    """A piece of text, and how it looks: bold, dim, good, bad, warn, title or "" for plain."""

    text: str
    style: str = ""


class Name(NamedTuple):
    """A name, and what stands `before` and `after` it.

    A `kind` (nodes, pods) is what the names are among which no two are shown alike, in all columns of a table.
    """

    name: str
    kind: str
    style: str = ""
    before: str = ""
    after: str = ""

    @property
    def text(self) -> str:
        return f"{self.before}{self.name}{self.after}"


class Names(NamedTuple):
    """Names of which as many are shown as there is room for, at most `most`, those beyond counted."""

    names: tuple[Name, ...]
    style: str = ""
    most: int | None = None


Part = Cell | Name | Names | str


def names_of(names: Iterable[str], kind: str, style: str = "", most: int | None = None) -> Names:
    """Names of one kind as one part."""
    return Names(tuple(Name(name, kind) for name in names), style, most)


def text_of(part: Part) -> str:
    """What a part says where there is room for it."""
    if isinstance(part, str):
        return part
    if isinstance(part, Names):
        names = [name.text for name in part.names]
        return ", ".join(names) if part.most is None else listed(names, part.most)
    return part.text


def style_of(part: Part) -> str:
    """How a part looks."""
    return "" if isinstance(part, str) else part.style


def listed(names: Sequence[str], most: int) -> str:
    """The names in one line, those beyond `most` counted."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def told_once(named: Iterable[tuple[str, Told]], fewest: int = _FEWEST_ALIKE) -> list[tuple[list[str], Told]]:
    """Who has the same told of them, together where they are not fewer than that, in the order of the first."""
    alike: dict[Told, list[str]] = {}
    for name, told in named:
        alike.setdefault(told, []).append(name)
    return [
        (group, told)
        for told, names in alike.items()
        for group in ([names] if len(names) >= fewest else [[name] for name in names])
    ]


def fitted(names: Sequence[str], width: int, most: int | None = None) -> str:
    """As many of the names as `width` has room for, at least one and each of them whole, with those beyond counted.

    Of more than `most`, and one, no more than `most`.
    """
    limit = len(names) if most is None or len(names) <= most + 1 else most
    shown, used = 1, -2
    for number, name in enumerate(names[:limit], start=1):
        used += len(name) + 2
        if used > width:
            break
        if used + len(_more(len(names) - number)) <= width:
            shown = number
    return ", ".join(names[:shown]) + _more(len(names) - shown)


def _more(number: int) -> str:
    return f" and {number:,} more" if number > 0 else ""


def counted(number: int, noun: str) -> str:
    """The number with its noun, in the plural where it needs to be."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
