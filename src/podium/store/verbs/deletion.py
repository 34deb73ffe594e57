"""Deletion: when a deleted object goes, how long it has until then, and what becomes of what it owns.

The rules of apiserver's registry/rest/delete.go and registry/generic/registry/store.go, and of
pkg/registry/core/pod/strategy.go (CheckGracefulDelete).
"""

from __future__ import annotations

from typing import Literal

from podium.api.errors import shown
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.times import MAX_TIME_NS, format_time, parse_time
from podium.store.admission.priority_classes import SYSTEM_CLASSES
from podium.store.errors import conflict, forbidden, invalid_options
from podium.store.stored import Stored

Propagation = Literal["", "Background", "Foreground", "Orphan"]
"""What becomes of the objects that a deleted object owns: they go after it, before it, or stay.

"" is Background for all kinds, but for an object that has the finalizer of another already.
"""

FOREGROUND = "foregroundDeletion"
"""The finalizer of an object that goes after what it owns."""

ORPHAN = "orphan"
"""The finalizer of an object that leaves behind what it owns."""

_FINALIZER_OF = {"Background": "", "Foreground": FOREGROUND, "Orphan": ORPHAN}
_SECOND = 10**9
_NAMESPACES = ("default", "kube-public", "kube-system")
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def check_mortal(stored: Stored) -> None:
    """Raise StoreError 403 for the deletion of a namespace or a PriorityClass that every cluster has."""
    if stored.kind == "Namespace" and stored.key in _NAMESPACES:
        raise forbidden(stored.resource, stored.key, "this namespace may not be deleted")
    if stored.kind == "PriorityClass" and stored.key in SYSTEM_CLASSES:
        raise forbidden(stored.resource, stored.key, "this is a system priority class and cannot be deleted")


def check_preconditions(stored: Stored, uid: str, resource_version: str) -> None:
    """Raise StoreError 409 where the object is not of that uid and version; "" stands for any."""
    if uid and uid != stored.uid:
        problem = f"has uid {stored.uid}, not {uid}; it was deleted and created again"
        said = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored.uid}"
        raise conflict(stored.resource, stored.key, problem, said)
    if resource_version and resource_version != str(stored.version):
        problem = f"is at version {stored.version}, not {resource_version}; read it again"
        raise conflict(stored.resource, stored.key, problem, _MODIFIED)


def deletion_metadata(object_: Kubernetes, metadata: Raw, grace_seconds: int | None, now: int) -> Raw:
    """The metadata after a request to delete; `metadata` itself when the request changes nothing.

    `grace_seconds` None asks for the object's own grace period. A later request can only shorten the period.
    """
    meta = object_.metadata
    current = meta.deletion_grace_period_seconds
    if meta.deletion_timestamp is None:
        return _deleted(metadata, now, _first_grace(object_, grace_seconds))
    if not current or grace_seconds is None or _not_negative(grace_seconds) >= current:
        return metadata
    since = parse_time(meta.deletion_timestamp) - current * _SECOND
    return _deleted(metadata, since, _not_negative(grace_seconds))


def with_propagation(metadata: Raw, propagation: str) -> Raw:
    """The metadata with the finalizer of this propagation alone; "" leaves the finalizers as they are.

    Raises StoreError 422 for a propagation that there is not.
    """
    if not propagation:
        return metadata
    if propagation not in _FINALIZER_OF:
        problem = f"{shown(propagation)} is not one of {', '.join(_FINALIZER_OF)}"
        raise invalid_options("DeleteOptions", "propagationPolicy", problem, "FieldValueNotSupported")
    wanted = _FINALIZER_OF[propagation]
    before = metadata.get("finalizers", [])
    after = [one for one in before if one == wanted or one not in (FOREGROUND, ORPHAN)]
    if wanted and wanted not in after:
        after.append(wanted)
    return metadata if after == before else {**metadata, "finalizers": after}


def is_due(metadata: Raw) -> bool:
    """Whether an object with this metadata is to be removed now: deleted, no grace left, and no finalizers."""
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("deletionGracePeriodSeconds")
        and not metadata.get("finalizers")
    )


def _first_grace(object_: Kubernetes, grace_seconds: int | None) -> int:
    if not isinstance(object_, Pod) or not object_.spec.node_name or object_.is_terminal:
        return 0
    own = object_.spec.termination_grace_period_seconds
    return _not_negative(own if grace_seconds is None else grace_seconds)


def _not_negative(grace_seconds: int) -> int:
    """The API server takes a negative period as one second."""
    return grace_seconds if grace_seconds >= 0 else 1


def _deleted(metadata: Raw, since: int, grace: int) -> Raw:
    # A period that ends after the last time that there is need not be longer than up to the second after it.
    grace = min(grace, (MAX_TIME_NS - since) // _SECOND + 1)
    return {
        **metadata,
        "deletionTimestamp": format_time(since + grace * _SECOND),
        "deletionGracePeriodSeconds": grace,
    }
