"""Deletion: when a deleted object is removed, its grace period, and the propagation to its dependents.

The rules of apiserver's registry/rest/delete.go and registry/generic/registry/store.go, and of
pkg/registry/core/pod/strategy.go (CheckGracefulDelete).
"""

from __future__ import annotations

from typing import Literal

from podium.api.errors import shown
from podium.api.meta import NAMESPACE_NAME_LABEL, Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.times import MAX_TIME_NS, format_time, parse_time
from podium.store.admission.priorities import SYSTEM_CLASSES
from podium.store.errors import conflict, forbidden, invalid_options
from podium.store.stored import Stored

Propagation = Literal["", "Background", "Foreground", "Orphan"]
"""The deletion propagation: dependents are deleted after the owner, before it, or not at all.

"" is Orphan for ReplicationControllers and Jobs, and Background for all others, unless the object already has the
finalizer of another propagation."""

FOREGROUND = "foregroundDeletion"
"""The finalizer of an object that is removed after its dependents."""

ORPHAN = "orphan"
"""The finalizer of an object that orphans its dependents."""

# Source: DefaultGarbageCollectionPolicy of the strategies in pkg/registry.
_ORPHANING = frozenset(("Job", "ReplicationController"))
_FINALIZER_OF = {"Background": "", "Foreground": FOREGROUND, "Orphan": ORPHAN}
_SECOND = 10**9
_NAMESPACES = ("default", "kube-public", "kube-system")
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def check_deletable(stored: Stored) -> None:
    """Raise StoreError 403 for the deletion of a namespace or a PriorityClass that every cluster has."""
    if stored.kind == "Namespace" and stored.key in _NAMESPACES:
        raise forbidden(stored.resource, stored.key, "this namespace may not be deleted")
    if stored.kind == "PriorityClass" and stored.key in SYSTEM_CLASSES:
        raise forbidden(stored.resource, stored.key, "this is a system priority class and cannot be deleted")


def check_preconditions(stored: Stored, uid: str, resource_version: str) -> None:
    """Raise StoreError 409 if the object does not have that uid and version; "" matches any."""
    if uid and uid != stored.uid:
        problem = f"has uid {stored.uid}, not {uid}; it was deleted and created again"
        said = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored.uid}"
        raise conflict(stored.resource, stored.key, problem, said)
    if resource_version and resource_version != str(stored.version):
        problem = f"is at version {stored.version}, not {resource_version}; read it again"
        raise conflict(stored.resource, stored.key, problem, _MODIFIED)


def preconditions_of(metadata: Raw) -> tuple[str, str]:
    """Return the uid and version that an object to be written requires; "" for any, as version 0 means."""
    version = str(metadata.get("resourceVersion") or "")
    return str(metadata.get("uid") or ""), "" if version == "0" else version


def deletion_metadata(object_: Kubernetes, metadata: Raw, grace_seconds: int | None, now: int) -> Raw:
    """Return the metadata after a delete request; `metadata` itself if the request changes nothing.

    `grace_seconds` None requests the object's own grace period. A later request can only shorten the period. The first
    one counts as a change of the desired state.
    """
    meta = object_.metadata
    current = meta.deletion_grace_period_seconds
    if meta.deletion_timestamp is None:
        grace = 0
        if isinstance(object_, Pod) and object_.spec.node_name and not object_.is_terminal:
            own = object_.spec.termination_grace_period_seconds
            grace = _not_negative(own if grace_seconds is None else grace_seconds)
        raised = {"generation": meta.generation + 1} if meta.generation else {}
        return _deleted(metadata | raised, now, grace)
    if not current or grace_seconds is None or _not_negative(grace_seconds) >= current:
        return metadata
    since = parse_time(meta.deletion_timestamp) - current * _SECOND
    return _deleted(metadata, since, _not_negative(grace_seconds))


def with_propagation(metadata: Raw, propagation: str, kind: str) -> Raw:
    """Return the metadata with the finalizer of this propagation alone; "" is the default of the kind.

    Raises StoreError 422 for an unknown propagation.
    """
    if not propagation and kind in _ORPHANING and FOREGROUND not in metadata.get("finalizers", ()):
        propagation = "Orphan"
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
    """Return whether an object with this metadata is due for removal: deleted, no grace left, and no finalizers."""
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("deletionGracePeriodSeconds")
        and not metadata.get("finalizers")
    )


def _not_negative(grace_seconds: int) -> int:
    """Return the grace period; the API server treats a negative one as one second."""
    return grace_seconds if grace_seconds >= 0 else 1


def _deleted(metadata: Raw, since: int, grace: int) -> Raw:
    # A period beyond the maximum time is cut to the second after that time.
    grace = min(grace, (MAX_TIME_NS - since) // _SECOND + 1)
    return {**metadata, "deletionTimestamp": format_time(since + grace * _SECOND), "deletionGracePeriodSeconds": grace}


NAMESPACE_FINALIZER = "kubernetes"
"""The entry in a namespace's `spec.finalizers` until it is empty."""


def as_new_namespace(raw: Raw) -> Raw:
    """Return a new namespace: active, with the finalizer, and labelled with its name.

    Malformed input raises nothing here; validation reports it.
    """
    metadata = raw["metadata"]
    labels = metadata.get("labels", {})
    spec = raw.get("spec", {})
    if not isinstance(labels, dict) or not isinstance(spec, dict):
        return raw
    finalizers = spec.get("finalizers")
    kept = finalizers if isinstance(finalizers, list) else []
    return {
        **raw,
        "metadata": {**metadata, "labels": {**labels, NAMESPACE_NAME_LABEL: metadata.get("name")}},
        "spec": {**spec, "finalizers": kept if NAMESPACE_FINALIZER in kept else [*kept, NAMESPACE_FINALIZER]},
        "status": {"phase": "Active"},
    }


def default_service_account(namespace: str) -> Raw:
    """Return the namespace's default ServiceAccount, which pods without an account use."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}


def is_terminating_namespace(stored: Stored) -> bool:
    """Return whether a namespace is terminating."""
    return stored.kind == "Namespace" and stored.object.metadata.deletion_timestamp is not None


def as_terminating_namespace(raw: Raw, *, is_empty: bool) -> Raw:
    """Return a deleted namespace; a namespace with contents keeps its finalizer."""
    spec, status = raw.get("spec", {}), raw.get("status", {})
    others = [finalizer for finalizer in spec.get("finalizers", []) if finalizer != NAMESPACE_FINALIZER]
    finalizers = others if is_empty else [*others, NAMESPACE_FINALIZER]
    return {**raw, "spec": {**spec, "finalizers": finalizers}, "status": {**status, "phase": "Terminating"}}
