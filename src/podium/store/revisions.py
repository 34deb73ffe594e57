"""All objects at their newest versions, and the log of writes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from types import MappingProxyType
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from podium.api.input.codec import NAME_LETTERS
from podium.api.meta import Kubernetes, Raw
from podium.store.api_resources import APIResource
from podium.store.stored import Reading, Stored
from podium.store.watch_log import WatchEvent, WatchLog

# The alphabet of apimachinery's util/rand: without vowels, so that no words arise.
_SUFFIX_LENGTH = 5
_MAX_BASE_LENGTH = 58

NO_OBJECTS: Mapping[str, Stored] = MappingProxyType({})
"""The empty set of objects of a kind."""


_FEW = 64
"""The maximum number of changes that are inserted one by one; more are merged by sorting."""


WireForm = Raw | Callable[[str], Raw]
"""The wire form of an object, or a function that makes it, with a version, when it is needed."""


def with_version(raw: Raw, version: str) -> Raw:
    """Return the object with that version."""
    return {**raw, "metadata": {**raw["metadata"], "resourceVersion": version}}


class Identities:
    """A sequence of identities that depends only on the seed; `count` of them have been drawn.

    Pods get the uids that are `recorded` for their keys, in the order of creation; no other object gets these.
    """

    def __init__(self, seed: int, recorded: Mapping[str, Sequence[str]] | None = None) -> None:
        # The prefix of the hash input; uids and names use different digest sizes.
        self._uids = blake2b(f"{seed}:".encode(), digest_size=16)
        self._names = blake2b(f"{seed}:".encode(), digest_size=8)
        self.count = 0
        self.given: dict[str, None] = {}
        """The uids that objects brought along, or that were recorded for them."""
        self._recorded = recorded or {}
        self._reserved = frozenset(uid for uids in self._recorded.values() for uid in uids)

    def uid(self, pod: str = "") -> str:
        """Return the uid recorded for a pod, else the next one, in the form of a UUID, that no object has or gets."""
        for uid in self._recorded.get(pod, ()):
            if self.give(uid):
                return uid
        while True:
            text = self._next(self._uids).hex()
            uid = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
            if uid not in self.given and uid not in self._reserved:
                return uid

    def name(self, base: str) -> str:
        """Return a name for `metadata.generateName`: the base, truncated if needed, and five letters or digits."""
        drawn = int.from_bytes(self._next(self._names))
        suffix = ""
        for _ in range(_SUFFIX_LENGTH):
            drawn, index = divmod(drawn, len(NAME_LETTERS))
            suffix += NAME_LETTERS[index]
        return base[:_MAX_BASE_LENGTH] + suffix

    def give(self, uid: str) -> bool:
        """Record a uid that an object brought along; return False if another object had it, even if deleted since."""
        if uid in self.given:
            return False
        self.given[uid] = None
        return True

    def mark(self) -> tuple[int, int]:
        """Return a savepoint for `rewind`."""
        return self.count, len(self.given)

    def rewind(self, mark: tuple[int, int]) -> None:
        """Undo all draws and records since the savepoint."""
        self.count, given = mark
        while len(self.given) > given:
            self.given.popitem()

    def _next(self, begun: blake2b) -> bytes:
        self.count += 1
        drawn = begun.copy()
        drawn.update(str(self.count).encode())
        return drawn.digest()


class JournalContent(Struct, frozen=True):
    """A state of the objects at `version`, and the events since; each object with the name of its kind.

    `identities` is the number that were drawn, and `given_uids` are those that objects brought along.
    """

    version: int
    objects: Sequence[tuple[str, Raw]]
    events: Sequence[tuple[Literal["ADDED", "MODIFIED", "DELETED"], str, Raw]]
    identities: int
    given_uids: Sequence[str]


class Journal(Protocol):
    """A durable log of every write, in order (`podium.store.durable_journal`)."""

    def append(self, events: Sequence[WatchEvent], identities: Identities) -> None:
        """Persist the writes of one transaction, all or none. An exception undoes the transaction."""
        ...

    def load(self) -> JournalContent:
        """Return the content so far."""
        ...


class Revisions:
    """The objects of each kind by key, and the log of writes.

    Each write creates one version, the next number. The writes of a transaction are published together, or not at all.
    """

    def __init__(self, log: WatchLog, identities: Identities, journal: Journal | None = None) -> None:
        self.log = log
        self.identities = identities
        self._journal = journal
        self.objects: dict[str, dict[str, Stored]] = {}
        """The objects of all kinds that have, or had, objects, by key, in no particular order."""
        self._keys: dict[str, SortedKeys] = {}
        self._changes: defaultdict[str, int] = defaultdict(int)
        self._callbacks: dict[str, Callable[[WatchEvent], None]] = {}
        # The last version, including that of the current transaction.
        self.version = log.version
        self.holds_wakes = False
        """Whether waiters are called by `wake` alone, because writes happen on another thread than theirs."""
        # The writes of the current transaction.
        self._staged: list[WatchEvent] = []
        self._depth = 0

    def of(self, resource: str) -> Mapping[str, Stored]:
        """Return the objects of a kind by key, in no particular order."""
        return self.objects.get(resource, NO_OBJECTS)

    def changes(self, resource: str) -> int:
        """Return a counter of the changes of a kind's objects; undone changes count twice."""
        return self._changes.get(resource, 0)

    def changes_of(self, resources: Iterable[str]) -> tuple[int | None, ...]:
        """Return the change counters of several kinds; None for kinds that never had objects."""
        return tuple(map(self._changes.get, resources))

    def keys(self, resource: str) -> SortedKeys:
        """Return the keys of the objects of a kind, in order."""
        return self._keys.get(resource) or SortedKeys()

    def in_order(self, resource: str, namespace: str = "") -> list[Stored]:
        """Return the objects of a kind in a namespace (all for ""), by key."""
        objects = self.objects.get(resource)
        if not objects:
            return []
        keys = self._keys[resource]
        return [objects[key] for key in keys.between(*keys.span(namespace))]

    def typed(self, type_: type[Reading], namespace: str = "") -> list[Reading]:
        """Return the readings of a kind's objects in a namespace (all for ""), by key."""
        objects = (stored.object for stored in self.in_order(type_.__name__, namespace))
        return [object_ for object_ in objects if isinstance(object_, type_)]

    def in_namespace(self, resource: str, namespace: str) -> list[Stored]:
        """Return the objects of a kind in a namespace, by key; none for "", which is no namespace."""
        return self.in_order(resource, namespace) if namespace else []

    def kinds(self) -> list[str]:
        """Return the kinds that have, or had, objects."""
        return sorted(self.objects)

    def put(self, stored: Stored) -> None:
        """Add an object that existed before the log begins."""
        self._set(stored.resource.name, stored.key, stored)

    def replay(self, event: WatchEvent) -> None:
        """Apply a write from a journal."""
        self._set(event.stored.resource.name, event.stored.key, None if event.type == "DELETED" else event.stored)
        self.log.append(event)
        self.version = event.version

    def write(
        self, resource: APIResource, previous: Stored | None, raw: WireForm, object_: Kubernetes, *, is_gone: bool
    ) -> Stored:
        """Create the next version: the object as `raw` and `object_` say, or its removal if it `is_gone`."""
        name, version = resource.name, self.version + 1
        key = object_.key if previous is None else previous.key
        text = str(version)
        after = partial(raw, text) if callable(raw) else with_version(raw, text)
        reading = replace(object_, metadata=replace(object_.metadata, resource_version=text))
        # All versions share one key string, so dictionary lookups succeed by identity.
        reading.__dict__["key"] = key
        stored = Stored(after, reading, version, resource, key)
        if previous is None or is_gone:
            self._set(name, key, None if is_gone else stored)
            event = WatchEvent("DELETED" if is_gone else "ADDED", stored, previous)
        else:
            self.objects[name][key] = stored
            self._changes[name] += 1
            event = WatchEvent("MODIFIED", stored, previous)
        self.version = version
        if self._depth or self._journal is not None or name in self._callbacks:
            self._stage(event)
        else:
            # Nothing after this can fail.
            self.log.append(event)
            self.wake()
        return stored

    def _stage(self, event: WatchEvent) -> None:
        """Publish a write, or stage it for the end of the current transaction."""
        self._staged.append(event)
        if self._depth:
            return
        try:
            self._publish()
        except BaseException:
            self._undo(0)
            raise
        self.wake()

    def on_write(self, resource: str, callback: Callable[[WatchEvent], None]) -> None:
        """Call `callback` for each published write of a kind, before the waiters are woken."""
        self._callbacks[resource] = callback

    def forget(self, resource: str) -> None:
        """End the watches of a kind, and drop its data if it has no objects."""
        self.log.end(resource)
        if not self.objects.get(resource):
            for kept in (self.objects, self._keys, self._changes):
                kept.pop(resource, None)

    @contextmanager
    def transaction(self, *, dry_run: bool = False) -> Iterator[None]:
        """Commit the writes within together; those of a dry run, or before an error, are undone."""
        mark, identities, keeps = len(self._staged), self.identities.mark(), False
        self._depth += 1
        try:
            yield
            if not dry_run and self._depth == 1:
                self._publish()
            keeps = not dry_run
        finally:
            self._depth -= 1
            if not keeps:
                self._undo(mark)
                self.identities.rewind(identities)
        self.wake()

    def _publish(self) -> None:
        if not self._staged:
            return
        if self._journal is not None:
            self._journal.append(self._staged, self.identities)
        for event in self._staged:
            self.log.append(event)
            if (callback := self._callbacks.get(event.stored.resource.name)) is not None:
                callback(event)
        self._staged.clear()

    def wake(self) -> None:
        """Call the waiters of published events, unless that is held; they may register again."""
        if not self.log.woken or self.holds_wakes:
            return
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


class SortedKeys(Struct, eq=False):
    """Keys in string order, so that those of a namespace are contiguous.

    An added or removed key is only recorded, and sorted in when the order is needed: writes cost nothing if nothing
    lists.
    """

    _sorted: list[str] = []
    # The keys that were added (True) or removed since the last sort.
    _changes: dict[str, bool] = {}

    def add(self, key: str) -> None:
        """Add a key that is absent."""
        if self._changes.pop(key, True):
            self._changes[key] = True

    def remove(self, key: str) -> None:
        """Remove a key that is present."""
        if not self._changes.pop(key, False):
            self._changes[key] = False

    def span(self, namespace: str = "", after: str = "") -> tuple[int, int]:
        """Return the range of positions of a namespace's keys (all for ""), excluding keys up to `after`."""
        keys = self._settled()
        if not namespace:
            return bisect_right(keys, after) if after else 0, len(keys)
        first = bisect_left(keys, f"{namespace}/")
        # "0" is the character after "/".
        end = bisect_left(keys, f"{namespace}0", first)
        return max(first, bisect_right(keys, after, first, end)) if after else first, end

    def between(self, begin: int, end: int) -> list[str]:
        """Return the keys in a range of positions from `span`."""
        return self._settled()[begin:end]

    def walk(self, begin: int, end: int) -> Iterator[str]:
        """Yield the keys in a range lazily, for callers that may stop early. Keys must not change meanwhile."""
        keys = self._settled()
        return (keys[index] for index in range(begin, min(end, len(keys))))

    def _settled(self) -> list[str]:
        """Return the keys with all recorded changes."""
        keys, changes = self._sorted, self._changes
        if not changes:
            return keys
        if len(changes) <= _FEW:
            for key, is_added in changes.items():
                place = bisect_left(keys, key)
                if is_added:
                    keys.insert(place, key)
                else:
                    del keys[place]
        else:
            self._sorted = keys = [key for key in keys if key not in changes]
            keys.extend(key for key, is_added in changes.items() if is_added)
            keys.sort()
        changes.clear()
        return keys
