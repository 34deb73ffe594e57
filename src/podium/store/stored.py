"""An object at one version: its wire form beside its typed reading."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.store.encoding import encoded
from podium.store.resource import Resource

Reading = TypeVar("Reading", bound=Kubernetes)

_SECTIONS = frozenset(("metadata", "spec", "status"))


class Stored:
    """An object as the store holds it from `version` on; both forms say the same and neither is ever changed.

    `key` is `namespace/name`, or the name alone for kinds without namespaces.
    """

    __slots__ = ("_encoded", "_keeps_bytes", "key", "object", "raw", "resource", "version")

    def __init__(self, raw: Raw, object_: Kubernetes, version: int, resource: Resource, key: str = "") -> None:
        """`key` is the object's, for those who know it."""
        self.raw: Final = raw
        self.object: Final = object_
        self.version: Final = version
        self.resource: Final = resource
        self.key: Final = key or object_.key
        self._encoded: bytes | None = None
        self._keeps_bytes = True

    def __eq__(self, other: object) -> bool:
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

        It takes about as many bytes as the object has in a file, and is kept for as long as this is the newest version,
        and then until some more have left (`podium.store.kind_log`).
        """
        if self._encoded is not None:
            return self._encoded
        found = encoded(self.raw)
        if self._keeps_bytes:
            self._encoded = found
        return found

    def let_bytes_go(self) -> None:
        """Keep no bytes from here on: who still asks for them has them made."""
        self._encoded = None
        self._keeps_bytes = False


def reread(object_: Reading, old: Raw, new: Raw) -> Reading:
    """The reading of `new`, where `object_` is that of `old` and they differ in metadata, spec and status at most.

    Only what is not the same dictionary in both is read again. Raises msgspec.ValidationError.
    """
    changed = {
        name: msgspec.convert(new.get(name, {}), type_)
        for name, type_ in _sections(type(object_))
        if new.get(name) is not old.get(name)
    }
    return msgspec.structs.replace(object_, **changed) if changed else object_


@cache
def _sections(type_: type[Kubernetes]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.type) for field in msgspec.structs.fields(type_) if field.name in _SECTIONS)
