"""What every Kubernetes object carries: its type, its metadata, and references between objects.

The structs of this package are narrow readings: they hold the fields that Podium reads and leave the rest
alone. Unknown fields are accepted and dropped; the wire form is kept by whoever must write an object back.
"""

from __future__ import annotations

from typing import Annotated, Any, Self, overload

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


Raw = dict[str, Any]
"""An object's JSON, or a part of it, as plain dictionaries and lists. What was handed on is never changed in place."""


class Narrow(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of all readings: immutable, camelCase on the wire, defaults left out when written."""


def plain(value: msgspec.Struct) -> Any:
    """A reading as it is written in JSON: plain dictionaries and lists."""
    return msgspec.json.decode(msgspec.json.encode(value))


class OwnerReference(Narrow, frozen=True, kw_only=True):
    """Which object an object belongs to (meta/v1 OwnerReference)."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Narrow, frozen=True, kw_only=True):
    """An object's identity and life (meta/v1 ObjectMeta); `times.parse_time` reads the timestamps."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, or None (meta/v1 GetControllerOf)."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class _Key:
    """`namespace/name`, or the name alone for objects without a namespace.

    Made when it is first asked for, and kept with the object: a `functools.cached_property` that takes no lock.
    """

    @overload
    def __get__(self, object_: None, owner: type[Kubernetes]) -> Self: ...

    @overload
    def __get__(self, object_: Kubernetes, owner: type[Kubernetes]) -> str: ...

    def __get__(self, object_: Kubernetes | None, owner: type[Kubernetes]) -> str | Self:
        if object_ is None:
            return self
        meta = object_.metadata
        key = object_.__dict__["key"] = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        return key


class Kubernetes(Narrow, frozen=True, kw_only=True, dict=True):
    """The base of all objects that stand on their own. What follows from a reading is kept with it (`dict`)."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    key = _Key()
