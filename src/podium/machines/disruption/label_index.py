"""Which labelled things a selector matches, and which selectors match labels, without asking all of them.

A selector that needs a label to have one of some values is only ever asked about things that have such a label; one
that has no such condition (the empty one, `!canary`) is asked about all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from podium.api.selectors import Selector

Key = TypeVar("Key")

_Pair = tuple[str, str]


class LabelIndex(Generic[Key]):
    """Things by their labels."""

    def __init__(self) -> None:
        self._labels: dict[Key, Mapping[str, str]] = {}
        self._having: dict[_Pair, dict[Key, None]] = {}

    def put(self, key: Key, labels: Mapping[str, str]) -> None:
        """The thing has these labels and no others."""
        self.remove(key)
        self._labels[key] = labels
        for pair in labels.items():
            self._having.setdefault(pair, {})[key] = None

    def remove(self, key: Key) -> None:
        """Forget the thing, if it is there."""
        for pair in self._labels.pop(key, {}).items():
            _discard(self._having, pair, key)

    def matching(self, selector: Selector) -> list[Key]:
        """The things that the selector matches, in an order that follows from that of the calls."""
        needed = _needed(selector)
        if not needed:
            return [key for key, labels in self._labels.items() if selector.matches(labels)]
        rarest = min(needed, key=lambda pairs: _crowd(self._having, pairs))
        candidates = (key for pair in rarest for key in self._having.get(pair, ()))
        return [key for key in candidates if selector.matches(self._labels[key])]


class SelectorIndex(Generic[Key]):
    """Selectors by what they need."""

    def __init__(self) -> None:
        self._selectors: dict[Key, Selector] = {}
        self._places: dict[Key, list[_Pair | None]] = {}
        # Under each pair of label and value the selectors that need it; under None those that need none.
        self._needing: dict[_Pair | None, dict[Key, None]] = {}

    def put(self, key: Key, selector: Selector) -> None:
        """The thing has this selector."""
        self.remove(key)
        self._selectors[key] = selector
        needed = _needed(selector)
        rarest = min(needed, key=lambda pairs: _crowd(self._needing, pairs), default=None)
        places: list[_Pair | None] = [None] if rarest is None else [*rarest]
        self._places[key] = places
        for place in places:
            self._needing.setdefault(place, {})[key] = None

    def remove(self, key: Key) -> None:
        """Forget the thing, if it is there."""
        self._selectors.pop(key, None)
        for place in self._places.pop(key, ()):
            _discard(self._needing, place, key)

    def matching(self, labels: Mapping[str, str]) -> list[Key]:
        """The things whose selectors match the labels, in an order that follows from that of the calls."""
        places = (None, *labels.items())
        return [key for place in places for key in self._needing.get(place, ()) if self._selectors[key].matches(labels)]


_Place = TypeVar("_Place")


def _discard(places: dict[_Place, dict[Key, None]], place: _Place, key: Key) -> None:
    places[place].pop(key, None)
    if not places[place]:
        del places[place]


def _crowd(places: Mapping[_Place, dict[Key, None]], pairs: Sequence[_Place]) -> int:
    """How many things stand under any of the pairs."""
    return sum(len(places.get(pair, ())) for pair in pairs)


def _needed(selector: Selector) -> list[list[_Pair]]:
    """For each label that must have one of some values, the pairs of that label and a value."""
    return [[(one.key, value) for value in one.values] for one in selector.requirements if one.operator == "In"]
