"""Graceful deletion: when a deleted object goes, and how long it has until then.

The rules of apiserver's registry/rest/delete.go and of pkg/registry/core/pod/strategy.go (CheckGracefulDelete).
"""

from __future__ import annotations

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.times import format_time, parse_time
from podium.store.stored import Raw

_SECOND = 10**9


def deletion_metadata(object_: Kubernetes, metadata: Raw, grace_seconds: int | None, now: int) -> Raw:
    """The metadata after a request to delete; `metadata` itself when the request changes nothing.

    `grace_seconds` None asks for the object's own grace period. A later request can only shorten the period.
    """
    meta = object_.metadata
    current = meta.deletion_grace_period_seconds
    if meta.deletion_timestamp is None:
        grace = _first_grace(object_, grace_seconds)
        return _deleted(metadata, now, grace)
    if not current or grace_seconds is None or _not_negative(grace_seconds) >= current:
        return metadata
    since = parse_time(meta.deletion_timestamp) - current * _SECOND
    return _deleted(metadata, since, _not_negative(grace_seconds))


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
    return {
        **metadata,
        "deletionTimestamp": format_time(since + grace * _SECOND),
        "deletionGracePeriodSeconds": grace,
    }
