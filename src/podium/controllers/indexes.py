"""Maps from keys to several items, and indexes by labels and by selectors of a namespace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from podium.api.selectors import Selector
from podium.cluster.selector_index import NAMESPACE, ObjectIndex, QueryIndex, RequiredKeys, selector_keys

Key = TypeVar("Key")
Item = TypeVar("Item")


def exchange(items: dict[Key, Item], key: Key, item: Item | None) -> Item | None:
    """Set the item of a key, or with None remove it; return the item before, None without one."""
    before = items.pop(key, None)
    if item is not None:
        items[key] = item
    return before


class MultiMap(dict[Key, dict[Item, None]]):
    """The items of each key, in the order in which they were added; a key without items is not kept."""

    def add(self, key: Key, item: Item) -> None:
        self.setdefault(key, {})[item] = None

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
    """An index of objects by namespace and label, built when it is first searched."""

    def __init__(self) -> None:
        self._objects: dict[Key, tuple[str, Mapping[str, str]]] = {}
        self._index: ObjectIndex[Key] | None = None

    def put(self, key: Key, labels: Mapping[str, str], namespace: str = "") -> None:
        """Add or replace an object with its labels."""
        self._objects[key] = namespace, labels
        if self._index is not None:
            self._index.put(key, [(NAMESPACE, namespace), *labels.items()])

    def remove(self, key: Key) -> None:
        self._objects.pop(key, None)
        if self._index is not None:
            self._index.remove(key)

    def matching(self, selector: Selector, namespace: str = "") -> list[Key]:
        """Return the objects that the selector matches, in an order that follows from the calls."""
        if self._index is None:
            self._index = ObjectIndex()
            for key, (of_object, labels) in self._objects.items():
                self._index.put(key, [(NAMESPACE, of_object), *labels.items()])
        found = ((key, self._objects[key]) for key in self._index.candidates(_required(selector, namespace)))
        return [key for key, (place, labels) in found if place == namespace and selector.matches(labels)]


class SelectorIndex(Generic[Key]):
    """An index of selectors of objects in a namespace."""

    def __init__(self) -> None:
        self._selectors: dict[Key, tuple[str, Selector]] = {}
        self._queries: QueryIndex[Key] = QueryIndex()

    def put(self, key: Key, selector: Selector, namespace: str = "") -> None:
        self._selectors[key] = namespace, selector
        self._queries.put(key, _required(selector, namespace))

    def remove(self, key: Key) -> None:
        self._selectors.pop(key, None)
        self._queries.remove(key)

    def of(self, key: Key) -> Selector:
        return self._selectors[key][1]

    def matching(self, labels: Mapping[str, str], namespace: str = "") -> list[Key]:
        """Return the keys of the selectors that match, in an order that follows from the calls."""
        found = self._queries.candidates([*labels.items(), (NAMESPACE, namespace)])
        selectors = ((key, self._selectors[key]) for key in found)
        return [key for key, (place, selector) in selectors if place == namespace and selector.matches(labels)]


def _required(selector: Selector, namespace: str) -> RequiredKeys:
    return [*selector_keys(selector), [(NAMESPACE, namespace)]]
