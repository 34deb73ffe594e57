"""All objects at their newest versions, and the way there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from msgspec.structs import replace

from podium.api.meta import Kubernetes, Raw
from podium.store.api_resource import APIResource
from podium.store.identities import Identities
from podium.store.log.watch_event import WatchEvent
from podium.store.log.watch_log import WatchLog
from podium.store.sorted_keys import SortedKeys
from podium.store.stored import Stored

NOTHING: Mapping[str, Stored] = MappingProxyType({})
"""The objects of a kind of which there are none."""


class Recorder(Protocol):
    """Keeps the writes beyond the process (`podium.store.journal.journal`)."""

    def append(self, events: Sequence[WatchEvent], identities: Identities) -> None:
        """Keep the writes of one transaction. What this raises undoes the transaction."""
        ...


class Transaction:
    """Writes that take place together (`Revisions.transaction`)."""

    __slots__ = ("_begun", "_dry_run", "_revisions")

    def __init__(self, revisions: Revisions, *, dry_run: bool) -> None:
        self._revisions = revisions
        self._dry_run = dry_run

    def __enter__(self) -> None:
        self._begun = self._revisions.begin()

    def __exit__(self, type_: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._revisions.end(self._begun, keeps=error is None and not self._dry_run)


class Revisions:
    """The objects of each kind by key, and the log of the writes that led to them.

    Each write makes one version, the next number. Those of a transaction become known together, or not at all.
    """

    def __init__(self, log: WatchLog, identities: Identities, recorder: Recorder | None = None) -> None:
        self.log = log
        self.identities = identities
        self._recorder = recorder
        self.objects: dict[str, dict[str, Stored]] = {}
        """The objects of those kinds of which there are any, or were, by key, in no order that means anything."""
        self._keys: dict[str, SortedKeys] = {}
        self._changes: defaultdict[str, int] = defaultdict(int)
        self._told: dict[str, Callable[[WatchEvent], None]] = {}
        # The last version, that of the transaction under way if there is one.
        self.version = log.version
        # The writes of the transaction under way.
        self._staged: list[WatchEvent] = []
        self._depth = 0

    def of(self, resource: str) -> Mapping[str, Stored]:
        """The objects of a kind by key, in no order that means anything."""
        return self.objects.get(resource, NOTHING)

    def changes(self, resource: str) -> int:
        """How often an object of a kind has come, changed or gone, what was taken back counted twice."""
        return self._changes.get(resource, 0)

    def changes_of(self, resources: Iterable[str]) -> tuple[int | None, ...]:
        """The same of several kinds; None for those that there never were."""
        return tuple(map(self._changes.get, resources))

    def keys(self, resource: str) -> SortedKeys:
        """The keys of the objects of a kind, in order."""
        return self._keys.get(resource) or SortedKeys()

    def in_order(self, resource: str, namespace: str = "") -> list[Stored]:
        """The objects of a kind in a namespace, or for "" in all, by key."""
        objects = self.objects.get(resource)
        if not objects:
            return []
        keys = self._keys[resource]
        return [objects[key] for key in keys.between(*keys.span(namespace))]

    def in_namespace(self, resource: str, namespace: str) -> list[Stored]:
        """The objects of a kind in a namespace, by key; none for "", which is no namespace."""
        return self.in_order(resource, namespace) if namespace else []

    def kinds(self) -> list[str]:
        """The kinds of which there are objects, or were."""
        return sorted(self.objects)

    def changed_since(self, resource: str, version: int) -> dict[str, Stored | None]:
        """Those objects of a kind that changed after a version, as they were then; None for what was not there.

        Raises StoreError 410 and 504 as `WatchLog.check` does.
        """
        was: dict[str, Stored | None] = {}
        for event in self.log.since(version, resource):
            was.setdefault(event.stored.key, event.previous)
        return was

    def put(self, stored: Stored) -> None:
        """Take in an object that was there before the log begins."""
        self._set(stored.resource.name, stored.key, stored)

    def replay(self, event: WatchEvent) -> None:
        """Take in a write that was recorded before."""
        self._set(event.stored.resource.name, event.stored.key, None if event.type == "DELETED" else event.stored)
        self.log.append(event)
        self.version = event.version

    def write(
        self, resource: APIResource, previous: Stored | None, raw: Raw, object_: Kubernetes, *, is_gone: bool
    ) -> Stored:
        """Make the next version: the object as `raw` and `object_` say, or its removal where it `is_gone`."""
        name, version = resource.name, self.version + 1
        key = object_.key if previous is None else previous.key
        stored = _at_version(version, resource, raw, object_, key)
        if previous is None or is_gone:
            self._set(name, key, None if is_gone else stored)
            event = WatchEvent("DELETED" if is_gone else "ADDED", stored, previous)
        else:
            self.objects[name][key] = stored
            self._changes[name] += 1
            event = WatchEvent("MODIFIED", stored, previous)
        self.version = version
        if self._depth or self._recorder is not None or name in self._told:
            self._stage(event)
        else:
            # Nothing that follows can fail.
            self.log.append(event)
            if self.log.woken:
                self._wake()
        return stored

    def _stage(self, event: WatchEvent) -> None:
        """Let a write become known with the transaction under way, or with those whom it has to be told first."""
        self._staged.append(event)
        if self._depth:
            return
        try:
            self._publish()
        except BaseException:
            self._undo(0)
            raise
        if self.log.woken:
            self._wake()

    def tell(self, resource: str, told: Callable[[WatchEvent], None]) -> None:
        """Have somebody told of each write of a kind once it is known, before those who wait for it are."""
        self._told[resource] = told

    def forget(self, resource: str) -> None:
        """Keep nothing of a kind of which there are no objects any more, and let its watches end."""
        self.log.end(resource)
        if not self.objects.get(resource):
            for kept in (self.objects, self._keys, self._changes):
                kept.pop(resource, None)

    def transaction(self, *, dry_run: bool = False) -> Transaction:
        """Let the writes within take place together; those of a dry run, or before an error, leave no trace."""
        return Transaction(self, dry_run=dry_run)

    def begin(self) -> tuple[int, tuple[int, int]]:
        """Begin a transaction, perhaps within another; returns where it began."""
        self._depth += 1
        return len(self._staged), self.identities.mark()

    def end(self, begun: tuple[int, tuple[int, int]], *, keeps: bool) -> None:
        """End the transaction that began there; its writes become known with the outermost one, or were never made."""
        mark, identities = begun
        try:
            if keeps and self._depth == 1:
                self._publish()
        except BaseException:
            keeps = False
            raise
        finally:
            self._depth -= 1
            if not keeps:
                self._undo(mark)
                self.identities.rewind(identities)
        if self.log.woken:
            self._wake()

    def _publish(self) -> None:
        if not self._staged:
            return
        if self._recorder is not None:
            self._recorder.append(self._staged, self.identities)
        for event in self._staged:
            self.log.append(event)
            told = self._told.get(event.stored.resource.name)
            if told is not None:
                told(event)
        self._staged.clear()

    def _wake(self) -> None:
        """Call those who wait for what was published; they may come back with the next thing to wait for."""
        woken, self.log.woken = self.log.woken, []
        for wake in woken:
            wake()

    def _undo(self, mark: int) -> None:
        while len(self._staged) > mark:
            event = self._staged.pop()
            self.version -= 1
            self._set(event.stored.resource.name, event.stored.key, event.previous)

    def _set(self, resource: str, key: str, stored: Stored | None) -> None:
        self._changes[resource] += 1
        objects = self.objects.get(resource)
        if objects is None:
            objects, self._keys[resource] = self.objects.setdefault(resource, {}), SortedKeys()
        if stored is None:
            if objects.pop(key, None) is not None:
                self._keys[resource].remove(key)
            return
        if key not in objects:
            self._keys[resource].add(key)
        objects[key] = stored


def _at_version(version: int, resource: APIResource, raw: Raw, object_: Kubernetes, key: str) -> Stored:
    """The object with that version in both of its forms."""
    text = str(version)
    after, written = raw.copy(), raw["metadata"].copy()
    after["metadata"] = written
    written["resourceVersion"] = text
    metadata = replace(object_.metadata, resource_version=text)
    reading = replace(object_, metadata=metadata)
    # All versions have one and the same text, that dictionaries find at a glance.
    reading.__dict__["key"] = key
    return Stored(after, reading, version, resource, key)
