"""Objects at one version (wire form, typed reading, conditions), and the log of the writes that made them."""

from __future__ import annotations

import builtins
import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any, Final, Literal, TypeVar

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.api.times import format_time
from podium.store.api_resources import APIResource
from podium.store.errors import expired, too_large
from podium.store.version_conversion import converted

Reading = TypeVar("Reading", bound=Kubernetes)

SET_BY_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""The metadata that only the API server sets."""

_MISSING = object()
_SECTIONS = frozenset(("metadata", "spec", "status"))
_ENCODER = msgspec.json.Encoder()


class Stored(msgspec.Struct, eq=False):
    """An object as the store holds it from `version` on; both forms have the same content and are never mutated.

    `key` identifies the object: `namespace/name`, or the name alone for cluster-scoped kinds.
    """

    raw: Final[Raw]
    object: Final[Kubernetes]
    version: Final[int]
    resource: Final[APIResource]
    key: Final[str]
    _encoded: bytes | None = None
    _superseded: deque[Stored] | None = None
    _others: dict[str, Stored] | None = None

    def __eq__(self, other: builtins.object) -> bool:
        if self is other or not isinstance(other, Stored):
            return self is other
        return (self.version, self.resource, self.raw) == (other.version, other.resource, other.raw)

    __ne__ = builtins.object.__ne__
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self.kind} {self.key} at {self.version}>"

    @property
    def kind(self) -> str:
        """The kind's name in the store, such as Pod."""
        return self.resource.name

    @property
    def uid(self) -> str:
        """The object's uid; a later object of the same name has another."""
        return self.object.metadata.uid

    @property
    def encoded(self) -> bytes:
        """The wire form as JSON, computed on first use and cached for lists, watches and reads.

        It takes about as many bytes as the object has in a file. The newest version keeps it; the last superseded
        versions keep it for slow watchers.
        """
        if self._encoded is None:
            self._encoded = encoded(self.raw)
            if self._superseded is not None:
                self._keep(self._superseded)
        return self._encoded

    def served_as(self, api_version: str) -> Stored:
        """Return the object in that version of its kind; "" is the storage version.

        The result is cached for as long as the object exists.
        """
        if api_version in ("", self.raw["apiVersion"]):
            return self
        if self._others is None or api_version not in self._others:
            convert_all((self,), api_version)
        return (self._others or {})[api_version]

    def leave(self, superseded: deque[Stored]) -> None:
        """Record that a newer version has superseded this one; `superseded` are such versions that keep their bytes."""
        self._superseded = superseded
        if self._encoded is not None or self._others is not None:
            self._keep(superseded)

    def _keep(self, superseded: deque[Stored]) -> None:
        """Keep the bytes, and drop those of the version that has kept them longest; they are made again on demand."""
        if len(superseded) == superseded.maxlen:
            superseded[0]._encoded = superseded[0]._others = None
        superseded.append(self)


def convert_all(objects: Iterable[Stored], api_version: str) -> None:
    """Convert objects of one kind to that version, "" for none, in one call of the kind's webhook if it has one."""
    waiting = [of for of in objects if api_version not in ("", of.raw["apiVersion"], *(of._others or ()))]
    if not waiting:
        return
    resource = waiting[0].resource
    served = resource.served_as(api_version)
    raws = converted(resource, [stored.raw for stored in waiting], api_version)
    for stored, raw in zip(waiting, raws, strict=True):
        object_ = stored.object if resource.converter is None else reread(stored.object, stored.raw, raw)
        other = Stored(raw, object_, stored.version, served, stored.key)
        stored._others = {**(stored._others or {}), api_version: other}


def reread(object_: Reading, old: Raw, new: Raw) -> Reading:
    """Return the reading of `new`; `object_` is that of `old`, and they differ at most in metadata, spec and status.

    Only sections whose values are not the same objects in both are read again. Raises msgspec.ValidationError.
    """
    changed = {}
    for name, type_ in _sections(type(object_)):
        if not is_copy(new.get(name), old.get(name)):
            changed[name] = msgspec.convert(new.get(name, {}), type_)
    return msgspec.structs.replace(object_, **changed) if changed else object_


def is_copy(new: Any, old: Any) -> bool:
    """Return whether two sections are one dictionary, or a dictionary and its copy, in whatever order."""
    if new is old:
        return True
    if type(new) is not dict or type(old) is not dict or len(new) != len(old):
        return False
    return all(new.get(name, _MISSING) is value for name, value in old.items())


@cache
def status_type(type_: type[Kubernetes]) -> Any:
    """Return the type of the status of such objects; None if it is not read."""
    return dict(_sections(type_)).get("status")


@cache
def _sections(type_: type[Kubernetes]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.type) for field in msgspec.structs.fields(type_) if field.name in _SECTIONS)


def encoded(raw: Raw) -> bytes:
    """Return the object as JSON."""
    try:
        return _ENCODER.encode(raw)
    except UnicodeEncodeError:
        # A lone surrogate, which JSON can only represent as an escape.
        return json.dumps(raw, separators=(",", ":")).encode()


def framed(type_: str, item: bytes) -> bytes:
    """Return the JSON of a watch event: its type and the encoded object."""
    return b'{"type":"%b","object":%b}' % (type_.encode(), item)


def is_true(conditions: object, type_: str) -> bool:
    """Return whether the condition of that type has the status True."""
    listed = conditions if isinstance(conditions, list | tuple) else ()
    return any(condition.get("type") == type_ and condition.get("status") == "True" for condition in listed)


def condition_of(conditions: Iterable[Raw], type_: str) -> Raw:
    """Return the condition of a type, empty without one."""
    return next((condition for condition in conditions if condition.get("type") == type_), {})


def with_condition(conditions: Sequence[Raw], condition: Raw, now: int) -> list[Raw]:
    """Return the conditions with `condition` in place of the one of its type, or appended.

    `lastTransitionTime` becomes `now` only if the condition's status changes (pkg/api/v1/pod/util.go,
    UpdatePodCondition).
    """
    return with_conditions(conditions, (condition,), now)


def with_conditions(conditions: Sequence[Raw], changed: Iterable[Raw], now: int) -> list[Raw]:
    """Return the conditions with each changed condition applied in turn."""
    result = list(conditions)
    time = format_time(now)
    for condition in changed:
        type_, updated = condition["type"], {**condition, "lastTransitionTime": time}
        for index, old in enumerate(result):
            if old.get("type") == type_:
                if old.get("status") == condition["status"] and "lastTransitionTime" in old:
                    updated["lastTransitionTime"] = old["lastTransitionTime"]
                result[index] = updated
                break
        else:
            result.append(updated)
    return result


LEAST_KEPT = 100
"""The number of a kind's last events that are kept regardless of others (kube-apiserver's smallest watch cache)."""

LEFT_ENCODED = 1_000
"""The number of superseded versions that keep their encoded bytes."""


class WatchLog:
    """The last events, at most `capacity` of them; every version after `oldest` has exactly one.

    The logs of single kinds reach further back for kinds with few events: the events of a few nodes are not evicted by
    those of many pods (kube-apiserver has a watch cache for each resource).
    """

    def __init__(self, capacity: int, begin: int = 0) -> None:
        self._capacity = capacity
        self._events: deque[WatchEvent] = deque(maxlen=capacity)
        self._kinds: dict[str, KindLog] = {}
        # Events up to this version are unknown for every kind.
        self._floor = begin
        self.version = begin
        # The callbacks of woken waiters, until they are called.
        self.woken: list[Callable[[], object]] = []

    @property
    def oldest(self) -> int:
        """The version after which all events are known."""
        return self.version - len(self._events)

    def of(self, kind: str) -> KindLog:
        """Return the events of a kind, by its name in the store."""
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = KindLog(self._floor, self._capacity)
        return found

    def end(self, kind: str, *, begins_anew: bool = False) -> None:
        """End the log of a kind, so that waiters learn that no more events follow; another one may begin anew."""
        found = self._kinds.pop(kind, None)
        if found is not None:
            found.is_ended = True
            self.woken += found.take_waiting()
        if begins_anew:
            self._kinds[kind] = KindLog(self.version, self._capacity)

    def append(self, event: WatchEvent) -> None:
        """Add the event of the next version. Raises ValueError for any other."""
        stored, known = event.stored, self._events
        version, name = stored.version, stored.resource.name
        if version != self.version + 1:
            raise ValueError(f"version {version} does not follow {self.version}")
        self.version = version
        kind = self._kinds.get(name) or self.of(name)
        kind.append(event)
        if kind.waiting:
            self.woken += kind.take_waiting()
        if len(known) == self._capacity and known:
            self._trim(known[0].stored)
        known.append(event)

    def keep_at_most(self, capacity: int) -> None:
        """Keep no more than so many events from now on."""
        self._capacity = capacity
        while len(self._events) > capacity:
            self._trim(self._events.popleft().stored)
        self._events = deque(self._events, maxlen=capacity)

    def _trim(self, oldest: Stored) -> None:
        """Drop the events up to the oldest one from the log of its kind."""
        kind = self._kinds.get(oldest.resource.name)
        if kind is not None:
            kind.trim(oldest.version)

    def compact(self, version: int) -> None:
        """Drop the events up to `version`."""
        while self._events and self._events[0].version <= version:
            self._events.popleft()
        self._floor = max(self._floor, min(version, self.version))
        for kind in self._kinds.values():
            kind.compact(self._floor)

    def check(self, version: int, kind: str = "") -> None:
        """Raise StoreError if events after `version` are missing, of one kind, or of all for "".

        410 Expired if some events are no longer kept, 504 for a version in the future.
        """
        if version > self.version:
            raise too_large(version, self.version)
        oldest = self.of(kind).begin if kind else self.oldest
        if version < oldest:
            raise expired(version, oldest)

    def since(self, version: int, kind: str = "") -> list[WatchEvent]:
        """Return the events after `version`, of one kind or of all, oldest first. Raises as `check` does."""
        if version == self.version - 1 and self._events:
            if not kind:
                return [self._events[-1]]
            is_other = self._events[-1].stored.resource.name != kind
            if is_other and kind in self._kinds and version >= self._kinds[kind].begin:
                return []
        self.check(version, kind)
        if kind:
            return self.of(kind).since(version)
        newest_first = list(islice(reversed(self._events), self.version - version))
        newest_first.reverse()
        return newest_first


@dataclass(slots=True, eq=False)
class KindLog:
    """The last events of a kind: all of them after version `begin`.

    Events are dropped together with those of all kinds, except for the last `LEAST_KEPT`. After `is_ended`, no more
    follow: the kind is no longer served, or is served differently.
    """

    begin: int
    capacity: int
    _events: deque[WatchEvent] = field(init=False)
    _left: deque[Stored] = field(default_factory=lambda: deque(maxlen=LEFT_ENCODED))
    waiting: dict[object, Callable[[], object]] = field(default_factory=dict)
    """The waiters, each with a function that is called once, with the next event."""
    is_ended: bool = False

    def __post_init__(self) -> None:
        self._events = deque(maxlen=self.capacity)

    @property
    def last(self) -> int:
        """The version of the last event, or of the last one that was dropped."""
        return self._events[-1].stored.version if self._events else self.begin

    def append(self, event: WatchEvent) -> None:
        """Add an event; drop the oldest one at capacity."""
        events = self._events
        if len(events) == self.capacity and events:
            self.begin = events[0].stored.version
        events.append(event)
        if event.previous is not None:
            event.previous.leave(self._left)
        if event.type == "DELETED":
            event.stored.leave(self._left)

    def trim(self, version: int) -> None:
        """Drop the events up to `version`, except for the number that is always kept."""
        events, least = self._events, min(LEAST_KEPT, self.capacity)
        while len(events) > least and events[0].stored.version <= version:
            self.begin = events.popleft().stored.version

    def compact(self, version: int) -> None:
        """Drop the events up to `version`."""
        while self._events and self._events[0].stored.version <= version:
            self._events.popleft()
        self.begin = max(self.begin, version)

    def since(self, version: int) -> list[WatchEvent]:
        """Return the events after `version`, which is at least `begin`, oldest first."""
        if version >= self.last:
            return []
        found = []
        for event in reversed(self._events):
            if event.stored.version <= version:
                break
            found.append(event)
        found.reverse()
        return found

    def take_waiting(self) -> list[Callable[[], object]]:
        """Remove all waiters and return their callbacks in the order of registration."""
        woken = list(self.waiting.values())
        self.waiting.clear()
        return woken


class WatchEvent(msgspec.Struct, frozen=True):
    """A committed write.

    `stored` is the object after it; for DELETED, the last state of the object at the version of its removal. `previous`
    is the object before it, None for ADDED.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    stored: Stored
    previous: Stored | None

    @property
    def version(self) -> int:
        """The version that the write committed."""
        return self.stored.version
