"""How a pod that a kubelet runs will behave, as its annotations say, read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podium.machines.kubelets.pod_annotations import (
    CRASH_AFTER,
    DURATION,
    MEMORY_USAGE,
    READY_AFTER,
    TERMINATION,
    duration_ns,
    memory_usage,
    never_terminates,
)


class PodBehaviour(msgspec.Struct, frozen=True, gc=False):
    """What the annotations say that can be read. Times in nanoseconds, None where nothing is said.

    The containers exit ``duration_ns`` after their start, or fail ``crash_after_ns`` after it, and are ready after
    ``ready_after_ns``. They take ``termination_ns`` to end, unless the pod ``never_terminates``.
    """

    duration_ns: int | None = None
    crash_after_ns: int | None = None
    ready_after_ns: int | None = None
    termination_ns: int | None = None
    never_terminates: bool = False
    memory_bytes: int = 0


PLAIN = PodBehaviour()
"""Of a pod that says nothing."""


def behaviour_of(annotations: Mapping[str, str]) -> PodBehaviour:
    """What the annotations of a pod say; what cannot be read is taken as if it were not there."""
    fields: dict[str, Any] = {}
    for name in annotations:
        if name in _READERS:
            field, read = _READERS[name]
            try:
                fields[field] = read(annotations, name)
            except ValueError:
                continue
    if TERMINATION in annotations and never_terminates(annotations):
        fields |= {"never_terminates": True, "termination_ns": None}
    return PodBehaviour(**fields) if fields else PLAIN


_READERS: Mapping[str, tuple[str, Callable[[Mapping[str, str], str], int | None]]] = {
    DURATION: ("duration_ns", duration_ns),
    CRASH_AFTER: ("crash_after_ns", duration_ns),
    READY_AFTER: ("ready_after_ns", duration_ns),
    TERMINATION: ("termination_ns", duration_ns),
    MEMORY_USAGE: ("memory_bytes", lambda annotations, _: memory_usage(annotations)),
}
