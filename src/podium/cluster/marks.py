"""Who may concern whom, without asking everybody: things by their marks, and questions by the marks that they need.

A mark is anything that a thing has and that a question may insist on: a label with its value, a namespace, a host port,
an affinity term. A question's needs are groups of marks; it can hold only for a thing that has one mark of every group.
It is then put to the things with a mark of that group which the fewest have. A question without needs is put to all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable

from podium.api.selectors import Selector

Mark = Hashable
Needs = Sequence[Sequence[Mark]]
Key = TypeVar("Key")
Place = TypeVar("Place")

# Marks are pairs; these stand where a label's key would. No label key has such a form.
NAMESPACE = "\0namespace"
ANTI_AFFINITY, AFFINITY, PREFERENCE = "\0anti-affinity", "\0affinity", "\0preference"
HOST_PORT, CLAIM, DISK = "\0host port", "\0claim", "\0disk"


@runtime_checkable
class Needing(Protocol):
    """A question that can only hold for things with certain marks."""

    @property
    def needs(self) -> Needs: ...


def needs_of(question: object) -> Needs:
    """What a question needs; nothing where it does not say."""
    return question.needs if isinstance(question, Needing) else ()


def selector_needs(selector: Selector) -> list[list[Mark]]:
    """What a selector needs of labels: for each label that must have one of some values, these values."""
    return [
        [(requirement.key, value) for value in requirement.values]
        for requirement in selector.requirements
        if requirement.operator == "In"
    ]


class MarkedThings(Generic[Key]):
    """Things by their marks."""

    def __init__(self) -> None:
        self._marks: dict[Key, tuple[Mark, ...]] = {}
        self._having: dict[Mark, dict[Key, None]] = {}

    def put(self, key: Key, marks: Iterable[Mark]) -> None:
        """The thing has these marks and no others."""
        self.remove(key)
        self._marks[key] = marks = tuple(marks)
        for mark in marks:
            self._having.setdefault(mark, {})[key] = None

    def remove(self, key: Key) -> None:
        """Forget the thing, if it is there."""
        for mark in self._marks.pop(key, ()):
            _discard(self._having, mark, key)

    def candidates(self, needs: Needs) -> list[Key]:
        """The things that may have what is needed, each once, in an order that follows from that of the calls."""
        if not needs:
            return list(self._marks)
        having = self._having
        rarest = min(needs, key=lambda group: sum(len(having.get(mark, ())) for mark in group))
        return list(dict.fromkeys(key for mark in rarest for key in having.get(mark, ())))


class Questions(Generic[Key]):
    """Questions by what they need."""

    def __init__(self) -> None:
        self._places: dict[Key, tuple[Mark | None, ...]] = {}
        # Under each mark the questions that need it; under None those that need nothing.
        self._needing: dict[Mark | None, dict[Key, None]] = {}

    def put(self, key: Key, needs: Needs) -> None:
        """There is a question with these needs."""
        self.remove(key)
        needing = self._needing
        rarest = min(needs, key=lambda group: sum(len(needing.get(mark, ())) for mark in group), default=None)
        self._places[key] = places = (None,) if rarest is None else tuple(rarest)
        for place in places:
            needing.setdefault(place, {})[key] = None

    def remove(self, key: Key) -> None:
        """Forget the question, if it is there."""
        for place in self._places.pop(key, ()):
            _discard(self._needing, place, key)

    def candidates(self, marks: Iterable[Mark]) -> list[Key]:
        """The questions that may hold for a thing with these marks, each once, in an order as above."""
        needing = self._needing
        return list(dict.fromkeys(key for place in (None, *marks) for key in needing.get(place, ())))


def _discard(places: dict[Place, dict[Key, None]], place: Place, key: Key) -> None:
    at_place = places.get(place)
    if at_place is not None:
        at_place.pop(key, None)
        if not at_place:
            del places[place]
