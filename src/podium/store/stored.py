"""An object at one version: its wire form, its typed reading, and the conditions in its status."""

from __future__ import annotations

import builtins
import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.api.times import format_time
from podium.store.api_resources import APIResource
from podium.store.version_conversion import converted

Reading = TypeVar("Reading", bound=Kubernetes)

SET_BY_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
"""The metadata that only the API server sets."""

EMPTY: tuple[Any, ...] = ({}, [], "", None)
"""The values of metadata that count as absent (`omitempty` in apimachinery, pkg/apis/meta/v1/types.go)."""

_MISSING = object()
_SECTIONS = frozenset(("metadata", "spec", "status"))
_ENCODER = msgspec.json.Encoder()


class Stored(msgspec.Struct, eq=False):
    """An object as the store holds it from `version` on; both forms have the same content and are never mutated.

    The wire form may be given as a function that makes it. `key` identifies the object: `namespace/name`, or the name
    alone for cluster-scoped kinds.
    """

    _raw: Raw | Callable[[], Raw]
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
    def raw(self) -> Raw:
        """The wire form, made on first use."""
        raw = self._raw
        if not isinstance(raw, dict):
            raw = self._raw = raw()
        return raw

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


def with_conditions(conditions: Sequence[Raw], changed: Iterable[Raw], now: int) -> list[Raw]:
    """Return the conditions with each of `changed` in place of the one of its type, or appended.

    `lastTransitionTime` becomes `now` only if the condition's status changes (pkg/api/v1/pod/util.go,
    UpdatePodCondition).
    """
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
