"""Maps from keys to several items, and indexes by labels and by selectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from podium.api.selectors import Selector
from podium.cluster.selector_index import ObjectIndex, QueryIndex, selector_keys

Key = TypeVar("Key")
Item = TypeVar("Item")


class MultiMap(dict[Key, dict[Item, None]]):
    """The items of each key, in the order in which they were added; a key without items is not kept."""

    def add(self, key: Key, item: Item) -> None:
        """Add an item of a key, once."""
        items = self.get(key)
        if items is None:
            self[key] = {item: None}
        else:
            items[item] = None

    def discard(self, key: Key, item: Item) -> bool:
        """Remove an item, if it is there; return whether the key has no items now."""
        items = self.get(key)
        if items is None:
            return True
        items.pop(item, None)
        if not items:
            del self[key]
        return not items

    def replace(self, item: Item, before: Iterable[Key], after: Iterable[Key]) -> None:
        """Move an item from some keys to others."""
        for key in before:
            self.discard(key, item)
        for key in after:
            self.add(key, item)


class LabelIndex(Generic[Key]):
    """An index of objects by label, built when it is first searched."""

    def __init__(self) -> None:
        self._labels: dict[Key, Mapping[str, str]] = {}
        self._index: ObjectIndex[Key] | None = None

    def put(self, key: Key, labels: Mapping[str, str]) -> None:
        """Add or replace an object with its labels."""
        self._labels[key] = labels
        if self._index is not None:
            self._index.put(key, labels.items())

    def remove(self, key: Key) -> None:
        self._labels.pop(key, None)
        if self._index is not None:
            self._index.remove(key)

    def matching(self, selector: Selector) -> list[Key]:
        """Return the objects that the selector matches, in an order that follows from the calls."""
        if self._index is None:
            self._index = ObjectIndex()
            for key, labels in self._labels.items():
                self._index.put(key, labels.items())
        found = self._index.candidates(selector_keys(selector))
        return [key for key in found if selector.matches(self._labels[key])]


class SelectorIndex(Generic[Key]):
    """An index of selectors."""

    def __init__(self) -> None:
        self._selectors: dict[Key, Selector] = {}
        self._queries: QueryIndex[Key] = QueryIndex()

    def __len__(self) -> int:
        return len(self._selectors)

    def put(self, key: Key, selector: Selector) -> None:
        self._selectors[key] = selector
        self._queries.put(key, selector_keys(selector))

    def remove(self, key: Key) -> None:
        self._selectors.pop(key, None)
        self._queries.remove(key)

    def matching(self, labels: Mapping[str, str]) -> list[Key]:
        """Return the keys of the selectors that match, in an order that follows from the calls."""
        found = self._queries.candidates(labels.items())
        return [key for key in found if self._selectors[key].matches(labels)]
