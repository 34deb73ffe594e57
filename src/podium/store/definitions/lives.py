"""How definitions change and go, and with them the objects of their kinds.

Source: apiextensions-apiserver (pkg/controller/finalizer, pkg/controller/status).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from podium.api.meta import Kubernetes, Raw
from podium.api.times import parse_time
from podium.store.api_resource import APIResource
from podium.store.definitions.definition import FINALIZER, as_terminating
from podium.store.definitions.definitions import Definitions
from podium.store.stored import Stored
from podium.store.verbs.readings import rereading


class Writes(Protocol):
    """How a store writes: what these rules need of it."""

    def commit(self, resource: APIResource, previous: Stored | None, raw: Raw, object_: Kubernetes) -> Stored:
        """Write an object; what is deleted and held by nothing goes."""
        ...

    def terminate(self, previous: Stored, raw: Raw, grace_seconds: int | None, now: int) -> Stored | None:
        """Write an object as deleted; None where it is gone with that."""
        ...

    def delete(self, kind: str, key: str, *, now: int) -> Stored | None:
        """Delete an object."""
        ...

    def objects(self, kind: str) -> list[Stored]:
        """The objects of a kind, by key."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Let the writes within take place together."""
        ...


class DefinitionLives:
    """Updates and deletes definitions, and lets those go that wait for the objects of their kinds."""

    def __init__(self, definitions: Definitions, writes: Writes) -> None:
        self._definitions = definitions
        self._writes = writes

    def update(self, previous: Stored, raw: Raw, object_: Kubernetes) -> Stored:
        """Write a definition, and serve its kind in that way. Raises StoreError 422 as `Definitions.judged` does."""
        created = parse_time(raw["metadata"]["creationTimestamp"])
        raw = self._definitions.judged(previous.resource, raw, previous.raw, created)
        stored = self._writes.commit(previous.resource, previous, raw, object_)
        self._definitions.follow()
        return stored

    def delete(self, previous: Stored, now: int) -> Stored | None:
        """Delete a definition with all objects of its kind; it stays until those are gone, and None stands for gone."""
        kind = self._definitions.kind_of(previous)
        with self._writes.transaction():
            for stored in self._objects(kind):
                if stored.object.metadata.deletion_timestamp is None:
                    self._writes.delete(kind, stored.key, now=now)
            is_awaited = next(iter(self._objects(kind)), None) is not None
            raw = as_terminating(previous.raw, now) if is_awaited else previous.raw
            left = self._writes.terminate(previous, raw, None, now)
        self._settle(previous.raw["spec"]["group"], now)
        return left

    def let_go(self, resource: APIResource) -> None:
        """Remove the definition of a kind if it waits for the objects of the kind, and the last of them has gone."""
        definition = self._definitions.of_kind(resource)
        if definition is None or next(iter(self._objects(resource.name)), None) is not None:
            return
        finalizers = definition.object.metadata.finalizers
        if FINALIZER not in finalizers or definition.object.metadata.deletion_timestamp is None:
            return
        left = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
        raw = {**definition.raw, "metadata": {**definition.raw["metadata"], "finalizers": left}}
        object_ = rereading(definition.resource, definition.object, definition.raw, raw)
        self._writes.commit(definition.resource, definition, raw, object_)
        self._definitions.follow()

    def _settle(self, group: str, now: int) -> None:
        """Serve the kinds of a group whose names have become free."""
        self._definitions.follow()
        for stored in self._definitions.waiting(group):
            raw = self._definitions.judged(stored.resource, stored.raw, stored.raw, now)
            self._writes.commit(stored.resource, stored, raw, stored.object)
        self._definitions.follow()

    def _objects(self, kind: str) -> Iterator[Stored]:
        return iter(self._writes.objects(kind) if kind else ())
