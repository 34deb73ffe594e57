"""Which labelled things a selector matches, and which selectors match labels, without asking all of them.

A selector that needs a label to have one of some values is only ever asked about things that have such a label; one
that has no such condition (the empty one, `!canary`) is asked about all of them (`podium.cluster.marks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from podium.api.selectors import Selector
from podium.cluster.marks import MarkedThings, Questions, selector_needs

Key = TypeVar("Key")


class LabelIndex(Generic[Key]):
    """Things by their labels."""

    def __init__(self) -> None:
        self._labels: dict[Key, Mapping[str, str]] = {}
        self._things: MarkedThings[Key] = MarkedThings()

    def put(self, key: Key, labels: Mapping[str, str]) -> None:
        """The thing has these labels and no others."""
        self._labels[key] = labels
        self._things.put(key, labels.items())

    def remove(self, key: Key) -> None:
        """Forget the thing, if it is there."""
        self._labels.pop(key, None)
        self._things.remove(key)

    def matching(self, selector: Selector) -> list[Key]:
        """The things that the selector matches, in an order that follows from that of the calls."""
        found = self._things.candidates(selector_needs(selector))
        return [key for key in found if selector.matches(self._labels[key])]


class SelectorIndex(Generic[Key]):
    """Selectors by what they need."""

    def __init__(self) -> None:
        self._selectors: dict[Key, Selector] = {}
        self._questions: Questions[Key] = Questions()

    def put(self, key: Key, selector: Selector) -> None:
        """The thing has this selector."""
        self._selectors[key] = selector
        self._questions.put(key, selector_needs(selector))

    def remove(self, key: Key) -> None:
        """Forget the thing, if it is there."""
        self._selectors.pop(key, None)
        self._questions.remove(key)

    def matching(self, labels: Mapping[str, str]) -> list[Key]:
        """The things whose selectors match the labels, in an order that follows from that of the calls."""
        found = self._questions.candidates(labels.items())
        return [key for key in found if self._selectors[key].matches(labels)]
