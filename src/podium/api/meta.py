"""The common parts of Kubernetes objects: type, metadata, references between objects, and access to their wire form.

The structs of this package are narrow readings: they hold only the fields that Podium reads. Unknown fields are
accepted and dropped; code that writes an object back keeps its wire form.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


Raw = dict[str, Any]
"""An object's JSON, or a part of it, as plain dictionaries and lists. Never mutate what was passed on."""

MAX_OBJECT_BYTES = 1_572_864
"""The maximum size of a stored object: the limit of etcd (--max-request-bytes)."""

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""The label of a namespace that holds its name."""


class APIStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of all readings: immutable, camelCase on the wire, defaults omitted when written."""


def plain(value: msgspec.Struct) -> Any:
    """Return a reading as plain dictionaries and lists, as in JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))


class OwnerReference(APIStruct, frozen=True, kw_only=True):
    """A reference to an object's owner (meta/v1 OwnerReference)."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(APIStruct, frozen=True, kw_only=True):
    """An object's metadata (meta/v1 ObjectMeta); `times.parse_time` parses the timestamps."""

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
    """The key `namespace/name`, or the name alone for cluster-scoped objects.

    It is computed on first use and stored in the object: a `functools.cached_property` without a lock.
    """

    def __get__(self, object_: Kubernetes, owner: type[Kubernetes]) -> str:
        meta = object_.metadata
        key = object_.__dict__["key"] = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        return key


class Kubernetes(APIStruct, frozen=True, kw_only=True, dict=True):
    """The base of all top-level objects. Derived values are cached in the object (`dict`)."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    key = _Key()

    @property
    def is_terminating(self) -> bool:
        """Whether it was deleted, and exists until its grace period or its finalizers end."""
        return self.metadata.deletion_timestamp is not None


def value_at(raw: Any, *path: str) -> Any:
    """Return the value at a path of field names, or None."""
    for name in path:
        raw = raw.get(name) if isinstance(raw, dict) else None
    return raw


def object_at(raw: Any, *path: str) -> Raw:
    """Return the object at a path; {} for anything else."""
    found = value_at(raw, *path)
    return found if isinstance(found, dict) else {}


def list_at(raw: Any, *path: str) -> list[Any]:
    """Return the list at a path; [] for anything else."""
    found = value_at(raw, *path)
    return found if isinstance(found, list) else []


def objects_at(raw: Any, *path: str) -> list[Raw]:
    """Return the objects in the list at a path."""
    found = value_at(raw, *path)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def key_of(metadata: Raw) -> str:
    """Return the key of the object with this metadata: `namespace/name`, or the name alone."""
    name, namespace = metadata.get("name", ""), metadata.get("namespace")
    return f"{namespace}/{name}" if namespace else str(name)


def is_comparable(version: str) -> bool:
    """Return whether a version can be ordered: it is a number without leading zeros."""
    return version.isascii() and version.isdigit() and version[0] != "0"


def is_older(version: str, other: str) -> bool:
    """Return whether a version is known to be older than the other; an absent one ("") is older than any.

    Of two versions of one resource that are decimal numbers, the greater is the later one: Kubernetes guarantees that
    since v1.35 (KEP-5504), and etcd has always numbered versions so. Others can only be compared for equality. Source:
    apimachinery (pkg/util/resourceversion).
    """
    if not is_comparable(other):
        return False
    if not version:
        return True
    # They may exceed the length limit of int(); of equal length, they compare as strings.
    return is_comparable(version) and (len(version), version) < (len(other), other)
