"""All objects at their newest versions, and the way there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.store.identity import Identities
from podium.store.resource import Resource
from podium.store.stored import Stored
from podium.store.watch_log import WatchEvent, WatchLog


class Record(Protocol):
    """Keeps the writes beyond the process (`podium.store.journal`)."""

    def append(self, events: Sequence[WatchEvent], identities: Identities) -> None:
        """Keep the writes of one transaction. What this raises undoes the transaction."""
        ...


class Revisions:
    """The objects of each kind by key, and the log of the writes that led to them.

    Each write makes one version, the next number. Those of a transaction become known together, or not at all.
    """

    def __init__(self, log: WatchLog, identities: Identities, record: Record | None = None) -> None:
        self.log = log
        self.identities = identities
        self._record = record
        self._objects: dict[str, dict[str, Stored]] = {}
        # By kind and namespace, the keys of the objects; of the kinds that were asked for by namespace.
        self._namespaces: dict[str, dict[str, set[str]]] = {}
        # The writes of the transaction under way.
        self._staged: list[WatchEvent] = []
        self._depth = 0

    @property
    def version(self) -> int:
        """The last version, that of the transaction under way if there is one."""
        return self.log.version + len(self._staged)

    def of(self, resource: str) -> Mapping[str, Stored]:
        """The objects of a kind by key, in no order that means anything."""
        return self._objects.get(resource, {})

    def in_namespace(self, resource: str, namespace: str) -> list[Stored]:
        """The objects of a kind in a namespace, by key. The first call looks at all of them, later ones do not."""
        objects = self.of(resource)
        if resource not in self._namespaces:
            self._namespaces[resource] = {}
            for key in objects:
                self._note(resource, key, is_there=True)
        return [objects[key] for key in sorted(self._namespaces[resource].get(namespace, ()))]

    def kinds(self) -> list[str]:
        """The kinds of which there are objects, or were."""
        return sorted(self._objects)

    def at(self, resource: str, version: int) -> dict[str, Stored]:
        """The objects of a kind as they were at a version. Raises StoreError 410 and 504 as `WatchLog.since` does."""
        objects = dict(self.of(resource))
        for event in reversed(self.log.since(version)):
            if event.stored.resource.name == resource:
                _put(objects, event.stored.key, event.previous)
        return objects

    def put(self, stored: Stored) -> None:
        """Take in an object that was there before the log begins."""
        self._set(stored.resource.name, stored.key, stored)

    def replay(self, event: WatchEvent) -> None:
        """Take in a write that was recorded before."""
        self._apply(event)
        self.log.extend((event,))

    def write(
        self, resource: Resource, previous: Stored | None, raw: Raw, object_: Kubernetes, *, is_gone: bool
    ) -> Stored:
        """Make the next version: the object as `raw` and `object_` say, or its removal where it `is_gone`."""
        stored = at_version(self.version + 1, resource, raw, object_)
        type_: Literal["ADDED", "MODIFIED", "DELETED"] = "MODIFIED" if previous else "ADDED"
        event = WatchEvent("DELETED" if is_gone else type_, stored, previous)
        self._apply(event)
        self._staged.append(event)
        if not self._depth:
            try:
                self._publish()
            except BaseException:
                self._undo(0)
                raise
        return stored

    @contextmanager
    def transaction(self, *, dry_run: bool = False) -> Iterator[None]:
        """Let the writes within take place together; those of a dry run, or before an error, leave no trace."""
        mark, identities = len(self._staged), self.identities.mark()
        self._depth += 1
        try:
            yield
            if not dry_run and self._depth == 1:
                self._publish()
        except BaseException:
            dry_run = True
            raise
        finally:
            self._depth -= 1
            if dry_run:
                self._undo(mark)
                self.identities.rewind(identities)

    def _publish(self) -> None:
        if self._record is not None and self._staged:
            self._record.append(self._staged, self.identities)
        self.log.extend(self._staged)
        self._staged.clear()

    def _undo(self, mark: int) -> None:
        while len(self._staged) > mark:
            event = self._staged.pop()
            self._set(event.stored.resource.name, event.stored.key, event.previous)

    def _apply(self, event: WatchEvent) -> None:
        stored = event.stored
        self._set(stored.resource.name, stored.key, None if event.type == "DELETED" else stored)

    def _set(self, resource: str, key: str, stored: Stored | None) -> None:
        _put(self._objects.setdefault(resource, {}), key, stored)
        if resource in self._namespaces:
            self._note(resource, key, is_there=stored is not None)

    def _note(self, resource: str, key: str, *, is_there: bool) -> None:
        by_namespace, namespace = self._namespaces[resource], key.rpartition("/")[0]
        if is_there:
            by_namespace.setdefault(namespace, set()).add(key)
        elif namespace in by_namespace:
            by_namespace[namespace].discard(key)
            if not by_namespace[namespace]:
                del by_namespace[namespace]


def at_version(version: int, resource: Resource, raw: Raw, object_: Kubernetes) -> Stored:
    """The object with that version in both of its forms."""
    text = str(version)
    metadata = msgspec.structs.replace(object_.metadata, resource_version=text)
    return Stored(
        {**raw, "metadata": {**raw["metadata"], "resourceVersion": text}},
        msgspec.structs.replace(object_, metadata=metadata),
        version,
        resource,
    )


def _put(objects: dict[str, Stored], key: str, stored: Stored | None) -> None:
    if stored is None:
        objects.pop(key, None)
    else:
        objects[key] = stored
