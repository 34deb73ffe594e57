"""The ways in which the names of a table can be shown, from all of them whole to what they share left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from podium.app.console.cells import Name, Names, Part, fitted, listed, text_of
from podium.app.console.names import Shared, cut_apart, shared_domain, shared_parts

_NOTHING = Shared()


@dataclass(frozen=True, slots=True)
class Naming:
    """One way: what is left out of the names of a kind, and which of them are shortened, by what is left of them."""

    shared: Mapping[str, Shared] = field(default_factory=dict)
    short: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """What has to be said above the table: what names share."""
        return [told for kind, shared in self.shared.items() if (told := shared.told(kind))]

    def shown(self, name: Name) -> str:
        """A name, with what stands around it."""
        if not name.name:
            return name.text
        rest = self.shared.get(name.kind, _NOTHING).rest_of(name.name)
        short = self.short.get(name.kind)
        return f"{name.before}{rest if short is None else short[rest]}{name.after}"

    def text(self, part: Part) -> str:
        """What a part says where there is room for it."""
        if isinstance(part, Name):
            return self.shown(part)
        if isinstance(part, Names):
            return text_of(part._replace(names=tuple(Name(self.shown(name), name.kind) for name in part.names)))
        return text_of(part)

    def fitted(self, part: Part, width: int) -> str:
        """What a part says in that width: fewer names, with the others counted; all else as it is."""
        if isinstance(part, Names) and part.names:
            return fitted([self.shown(name) for name in part.names], width, part.most)
        return self.text(part)

    def least(self, part: Part, number: int) -> int:
        """The room that so many of several names need, the others counted; 0 for all else."""
        if not isinstance(part, Names) or not part.names:
            return 0
        most = number if part.most is None else min(number, part.most)
        return len(listed([self.shown(name) for name in part.names], most))

    def shortened(self, rooms: Mapping[str, int]) -> Naming:
        """The same with the names of some kinds in that many characters, no two alike."""
        rests = {kind: map(self.shared.get(kind, _NOTHING).rest_of, self.names[kind]) for kind in rooms}
        short = {kind: cut_apart(rests[kind], room) for kind, room in rooms.items()}
        return Naming(self.shared, short, self.names)


NO_NAMING = Naming()
"""All names whole."""


def namings(rows: Sequence[Sequence[Part]]) -> Iterator[Naming]:
    """The ways in which nothing is lost, each with shorter names: whole, without domains, without what they share.

    Kinds follow one another, those of which more goes first.
    """
    names = _names(rows)
    shared: dict[str, Shared] = {}
    yield Naming(names=names)
    for find in (shared_domain, shared_parts):
        found = {kind: find(of_kind) for kind, of_kind in names.items()}
        for kind in sorted(found, key=lambda kind: (-len(found[kind].beginning + found[kind].end), kind)):
            if found[kind] != shared.get(kind, _NOTHING):
                shared = {**shared, kind: found[kind]}
                yield Naming(shared, names=names)


def _names(rows: Sequence[Sequence[Part]]) -> dict[str, list[str]]:
    """The names of each kind, in their order."""
    names: dict[str, dict[str, None]] = {}
    for row in rows:
        for part in row:
            for name in part.names if isinstance(part, Names) else (part,):
                if isinstance(name, Name) and name.name:
                    names.setdefault(name.kind, {})[name.name] = None
    return {kind: list(of_kind) for kind, of_kind in names.items()}
