"""Indexes that find the few queries that may match an object, and the few objects that a query may match.

An index key is a property that an object has and a query may require: a label with its value, a namespace, a host port,
an affinity term. A query's required keys are groups; it matches only objects that have a key of every group. It is
tested only on the objects that have a key of its rarest group, or on all objects if it requires nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from podium.api.selectors import Selector
from podium.cluster.arrays import discard

IndexKey = Hashable
RequiredKeys = Sequence[Sequence[IndexKey]]
Key = TypeVar("Key")

# Index keys are tuples; these take the place of a label key, and no label key looks like them.
NAMESPACE = "\0namespace"
ANTI_AFFINITY, AFFINITY, PREFERENCE = "\0anti-affinity", "\0affinity", "\0preference"
HOST_PORT, CLAIM, DISK = "\0host port", "\0claim", "\0disk"


def required_keys_of(query: object) -> RequiredKeys:
    """Return the keys that a query requires by its attribute ``required_keys``; none without that."""
    keys: RequiredKeys = getattr(query, "required_keys", ())
    return keys


def selector_keys(selector: Selector) -> list[list[IndexKey]]:
    """Return the label values that a selector requires: a group for each ``In`` requirement."""
    return [
        [(requirement.key, value) for value in requirement.values]
        for requirement in selector.requirements
        if requirement.operator == "In"
    ]


class _Index(Generic[Key]):
    """Objects or queries by their index keys."""

    def __init__(self) -> None:
        self._keys_of: dict[Key, tuple[IndexKey, ...]] = {}
        self._with_key: dict[IndexKey, dict[Key, None]] = {}

    def remove(self, key: Key) -> None:
        """Remove an object or query if it is present."""
        for index_key in self._keys_of.pop(key, ()):
            discard(self._with_key, index_key, key)

    def _put(self, key: Key, index_keys: Iterable[IndexKey]) -> None:
        self._keys_of[key] = index_keys = tuple(index_keys)
        for index_key in index_keys:
            self._with_key.setdefault(index_key, {})[key] = None

    def _number(self, group: Iterable[IndexKey]) -> int:
        return sum(len(self._with_key.get(each, ())) for each in group)


class ObjectIndex(_Index[Key]):
    """An index of objects by their index keys."""

    def put(self, key: Key, index_keys: Iterable[IndexKey]) -> None:
        self.remove(key)
        self._put(key, index_keys)

    def candidates(self, required_keys: RequiredKeys) -> list[Key]:
        """Return the objects that may have the required keys, without duplicates, in a deterministic order."""
        if not required_keys:
            return list(self._keys_of)
        rarest, with_key = min(required_keys, key=self._number), self._with_key
        return list(dict.fromkeys(key for each in rarest for key in with_key.get(each, ())))


class QueryIndex(_Index[Key]):
    """An index of queries by a key that they require; those that require nothing are under None."""

    def put(self, key: Key, required_keys: RequiredKeys) -> None:
        self.remove(key)
        self._put(key, min(required_keys, key=self._number, default=(None,)))

    def candidates(self, index_keys: Iterable[IndexKey]) -> list[Key]:
        """Return the queries that may match an object with these keys, without duplicates, in a deterministic order."""
        with_key = self._with_key
        if not with_key:
            return []
        return list(dict.fromkeys(key for each in (None, *index_keys) for key in with_key.get(each, ())))
