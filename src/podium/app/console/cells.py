"""The parts of a page's columns: text, a name, or several names."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

NODES = "nodes"
PODS = "pods"
WORKLOADS = "workloads"
BUDGETS = "budgets"
QUOTAS = "quotas"


_FEWEST_ALIKE = 3
_NO_CLAIMS = "no new claims to deallocate, "
_AVAILABLE = re.compile(r"0/\d+ nodes are available: ")
_PLURALS = {"is": "are", "has": "have", "does": "do"}

Same = TypeVar("Same", bound=Hashable)
Item = TypeVar("Item")


class Cell(NamedTuple):
    """A piece of text and its style: bold, dim, good, bad, warn, title or "" for plain."""

    text: str
    style: str = ""


class Name(NamedTuple):
    """A name with the text `before` and `after` it.

    No two names of a `kind` (nodes, pods) are shown alike, in all columns of a table.
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
    """Names: as many as fit are shown, at most `most`, and the others are counted."""

    names: tuple[Name, ...]
    style: str = ""
    most: int | None = None


Part = Cell | Name | Names | str | int
"""A part of a row; a number is written with thousands separators."""


def names_of(names: Iterable[str], kind: str, style: str = "", most: int | None = None) -> Names:
    """Return names of one kind as one part."""
    return Names(tuple(Name(name, kind) for name in names), style, most)


def text_of(part: Part) -> str:
    """Return the whole text of a part."""
    if isinstance(part, str | int):
        return part if isinstance(part, str) else f"{part:,}"
    return listed([name.text for name in part.names], part.most) if isinstance(part, Names) else part.text


def style_of(part: Part) -> str:
    """Return the style of a part."""
    return "" if isinstance(part, str | int) else part.style


def listed(names: Sequence[str], most: int | None) -> str:
    """Return the names in one line; those beyond `most` are counted, if there are more than one."""
    if most is None or len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def by_key(pairs: Iterable[tuple[Same, Item]]) -> dict[Same, list[Item]]:
    """Return the items by key, in the order of the keys' first items."""
    found: dict[Same, list[Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found


def grouped_by_text(named: Iterable[tuple[str, Same]]) -> list[tuple[list[str], Same]]:
    """Return the names with the text about each: names with equal texts are joined, unless they are too few.

    The groups are in the order of their first names.
    """
    alike = by_key((text, name) for name, text in named)
    return [
        (group, text)
        for text, names in alike.items()
        for group in ([names] if len(names) >= _FEWEST_ALIKE else [[name] for name in names])
    ]


def fitted(names: Sequence[str], width: int, most: int | None = None) -> str:
    """Return as many whole names as fit into `width`, at least one and at most `most`; the others are counted."""
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


def counted(number: int, noun: str, verb: str = "") -> str:
    """Return the number with its noun, in the plural except for 1, and with the ``verb`` in the same number."""
    noun = noun if number == 1 else f"{noun}s"
    return f"{number:,} {noun} {agreeing(number, verb)}" if verb else f"{number:,} {noun}"


def agreeing(number: int, verb: str) -> str:
    """Return a verb in the third person, such as `waits`, in the plural except for 1."""
    return verb if number == 1 else _PLURALS.get(verb, verb.removesuffix("s"))


def whole_reason(message: str) -> str:
    """Return why no node fits a pod and the result of preemption, without redundant parts.

    These are the number of all nodes, and the note that there are no claims to deallocate.
    """
    return _AVAILABLE.sub("", message).replace(_NO_CLAIMS, "").rstrip(".")
