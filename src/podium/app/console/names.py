"""How names are shown where there is no room for them whole.

What all of them share goes first, and is said once for all. Only where that is not enough is something left out of
single names, marked by an ellipsis, and never so that two different names would look alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

ELLIPSIS = "…"

_SEPARATORS = "-./_ "
_DOMAIN = "."
# What saves less is not worth the line that says it.
_LEAST_SHARED = 6
# Each round tells apart what differs a line's length further on in the names; a name of Kubernetes ends before that.
_ROUNDS = 32


class Shared(NamedTuple):
    """What all names of a kind begin with and end in, and what is left out of each of them."""

    beginning: str = ""
    end: str = ""

    def rest_of(self, name: str) -> str:
        """The name without what it shares, which an ellipsis stands for where that is a beginning."""
        rest = name[len(self.beginning) : len(name) - len(self.end)]
        return f"{ELLIPSIS}{rest}" if self.beginning else rest

    def told(self, kind: str) -> str:
        """The sentence that says it, as in `nodes end in .eu-west-1.compute.internal`; "" for nothing."""
        parts = [f"begin with {self.beginning}"] if self.beginning else []
        if self.end:
            parts.append(f"end in {self.end}")
        return f"{kind} {' and '.join(parts)}" if parts else ""


def shared_domain(names: Collection[str]) -> Shared:
    """The domain that all names end in: from the first dot on at which they are alike. A single name has one, too."""
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
    """The domain, and what all names begin with up to the last separator, as `default/web-5d4f8c7b9-`."""
    end = shared_domain(names).end
    rests = sorted({name.removesuffix(end) for name in names})
    alike = _alike(rests) if len(rests) > 1 else ""
    length = 1 + max(alike.rfind(separator) for separator in _SEPARATORS)
    while length and any(len(rest) <= length for rest in rests):
        length = 1 + max(alike.rfind(separator, 0, length - 1) for separator in _SEPARATORS)
    return Shared(alike[:length] if length >= _LEAST_SHARED else "", end)


def cut_apart(names: Iterable[str], width: int) -> dict[str, str]:
    """Each name in at most `width` characters, no two alike; one for which there is no such form stays whole.

    The middle goes, where that tells a name from all others. Of names that would be alike so, what they share goes.
    """
    different = sorted(set(names))
    forms = {name: without_middle(name, width) for name in different}
    for _ in range(_ROUNDS):
        clashes = [group for group in _by_form(forms) if len(group) > 1]
        if not clashes:
            return forms
        for group in clashes:
            forms |= _told_apart(group, width)
    for group in _by_form(forms):
        if len(group) > 1:
            forms |= {name: name for name in group}
    # A whole name may look like the short form of another.
    alike = any(len(group) > 1 for group in _by_form(forms))
    return {name: name for name in different} if alike else forms


def without_middle(name: str, width: int) -> str:
    """The name, with its middle left out where it is longer than `width`."""
    if len(name) <= width:
        return name
    head = (width - 1) // 2
    return f"{name[:head]}{ELLIPSIS}{name[len(name) - (width - 1 - head) :]}"


def _alike(names: Collection[str]) -> str:
    """What all names begin with."""
    first, last = min(names), max(names)
    length = next((place for place, char in enumerate(first) if place >= len(last) or char != last[place]), len(first))
    return first[:length]


def _by_form(forms: dict[str, str]) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    for name, form in forms.items():
        groups.setdefault(form, []).append(name)
    return list(groups.values())


def _told_apart(group: list[str], width: int) -> dict[str, str]:
    """The names from where they begin to differ; with their beginnings where all that follows leaves room for them."""
    begin = len(_alike(group))
    longest = max(map(len, group)) - begin
    if longest < width:
        # All ends are shown whole, and before them as much of the beginning as there is room for.
        head = width - 1 - longest
        return {name: f"{name[:head]}{ELLIPSIS}{name[begin:]}" for name in group}
    window = max(width - 2, 1)
    return {name: _windowed(name, begin, window) for name in group}


def _windowed(name: str, begin: int, window: int) -> str:
    before = ELLIPSIS if begin else ""
    after = ELLIPSIS if len(name) > begin + window else ""
    return f"{before}{name[begin : begin + window]}{after}"
