"""When the deletion of a pod began."""

from __future__ import annotations

from podium.api.pod import Pod
from podium.api.times import parse_time

_SECOND = 10**9


def deletion_ns(pod: Pod) -> int | None:
    """When a pod was deleted, by its own account; None for one that is not."""
    if pod.metadata.deletion_timestamp is None:
        return None
    return parse_time(pod.metadata.deletion_timestamp) - (pod.metadata.deletion_grace_period_seconds or 0) * _SECOND
