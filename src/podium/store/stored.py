"""An object at one version: its wire form beside its typed reading."""

from __future__ import annotations

import builtins
from collections import deque
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.store.api_resource import APIResource
from podium.store.conversion.conversion import converted
from podium.store.encoding import encoded

Reading = TypeVar("Reading", bound=Kubernetes)

_SECTIONS = frozenset(("metadata", "spec", "status"))


class Stored(msgspec.Struct, eq=False):
    """An object as the store holds it from `version` on; both forms say the same and neither is ever changed.

    `key` is that of the object: `namespace/name`, or the name alone for kinds without namespaces.
    """

    raw: Final[Raw]
    object: Final[Kubernetes]
    version: Final[int]
    resource: Final[APIResource]
    key: Final[str]
    _encoded: bytes | None = None
    _left: LeftVersions | None = None
    _others: dict[str, Stored] | None = None

    def __eq__(self, other: builtins.object) -> bool:
        """Whether both are the same object at the same version."""
        if self is other:
            return True
        if not isinstance(other, Stored):
            return NotImplemented
        return (self.version, self.resource, self.raw) == (other.version, other.resource, other.raw)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """The kind, the key and the version."""
        return f"<{self.kind} {self.key} at {self.version}>"

    @property
    def kind(self) -> str:
        """What the store calls the kind, such as Pod."""
        return self.resource.name

    @property
    def uid(self) -> str:
        """The object's identity; a namesake that comes later has another."""
        return self.object.metadata.uid

    @property
    def encoded(self) -> bytes:
        """The wire form as JSON, made when it is first asked for and kept for lists, watches and reads to share.

        It takes about as many bytes as the object has in a file. The newest version keeps it; those that have left,
        for watchers that have yet to see them, as long as `LeftVersions` says.
        """
        if self._encoded is None:
            self._encoded = encoded(self.raw)
            if self._left is not None:
                self._left.keep(self)
        return self._encoded

    def served_as(self, api_version: str) -> Stored:
        """The object as those see it who ask for it in that version of its kind; "" is the one that is stored.

        What is made for one of them is kept for the others as long as the object is.
        """
        if api_version in ("", self.raw["apiVersion"]):
            return self
        others = self._others = self._others or {}
        if api_version not in others:
            raw = converted(self.resource, self.raw, api_version)
            others[api_version] = Stored(raw, self.object, self.version, self.resource.served_as(api_version), self.key)
        return others[api_version]

    def leave(self, left: LeftVersions) -> None:
        """Be the newest version no longer."""
        self._left = left
        if self._encoded is not None or self._others is not None:
            left.keep(self)

    def let_bytes_go(self) -> None:
        """Keep no bytes; who asks for them again has them made."""
        self._encoded = self._others = None


class LeftVersions:
    """Those of the versions that are the newest no longer which have encoded bytes: at most `most` keep them."""

    __slots__ = ("_kept",)

    def __init__(self, most: int) -> None:
        self._kept: deque[Stored] = deque(maxlen=most)

    def keep(self, stored: Stored) -> None:
        """Let a version keep its bytes, in the place of the one that has kept them longest."""
        kept = self._kept
        if len(kept) == kept.maxlen:
            kept[0].let_bytes_go()
        kept.append(stored)


def reread(object_: Reading, old: Raw, new: Raw) -> Reading:
    """The reading of `new`, where `object_` is that of `old` and they differ in metadata, spec and status at most.

    Only what is not the same dictionary in both is read again. Raises msgspec.ValidationError.
    """
    changed = {}
    for name, type_ in _sections(type(object_)):
        if new.get(name) is not old.get(name):
            changed[name] = msgspec.convert(new.get(name, {}), type_)
    return msgspec.structs.replace(object_, **changed) if changed else object_


@cache
def status_type(type_: type[Kubernetes]) -> Any:
    """What reads the status of such objects; None where it is not read."""
    return dict(_sections(type_)).get("status")


@cache
def _sections(type_: type[Kubernetes]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.type) for field in msgspec.structs.fields(type_) if field.name in _SECTIONS)
