"""The objects of a kind as they were at one version, without a copy of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from podium.store.revisions import Revisions
from podium.store.stored import Stored


class PartOfKind:
    """The objects of a kind by key, of one namespace or for "" of all, whose keys come after `after`.

    Those of an earlier version are the newest ones but for what the log tells, so that this costs what has happened
    since. Nothing may be written while they are gone through. Raises StoreError 410 and 504 as `WatchLog.check` does.
    """

    def __init__(self, revisions: Revisions, kind: str, namespace: str, after: str, version: int) -> None:
        self._objects = revisions.of(kind)
        self._keys = revisions.keys(kind)
        self._begin, self._end = self._keys.span(namespace, after)
        prefix = f"{namespace}/" if namespace else ""
        self._was: dict[str, Stored | None] = {}
        if version != revisions.version:
            changed = revisions.changed_since(kind, version)
            self._was = {key: was for key, was in changed.items() if key > after and key.startswith(prefix)}
        self._restored = sorted(key for key, was in self._was.items() if was is not None and key not in self._objects)

    def __len__(self) -> int:
        """How many there are."""
        added = sum(was is None and key in self._objects for key, was in self._was.items())
        return self._end - self._begin - added + len(self._restored)

    def __iter__(self) -> Iterator[Stored]:
        """Each of them, by key."""
        keys = self._keys.walk(self._begin, self._end)
        if not self._was:
            return map(self._objects.__getitem__, keys)
        found = (self._was.get(key, self._objects.get(key)) for key in merge(keys, self._restored))
        return (stored for stored in found if stored is not None)
