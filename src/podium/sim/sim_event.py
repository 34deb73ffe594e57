"""Something that happened in a simulation, as results tell it."""

from __future__ import annotations

from typing import Any

import msgspec

# What is tried again and again, and fails in the same way.
_REPEATED = frozenset(("FailedScheduling", "FailedCreate"))
_SECOND = 10**9


def seconds(ns: int) -> int | float:
    """Seconds, as a whole number where they are one."""
    return ns // _SECOND if ns % _SECOND == 0 else ns / _SECOND


class SimEvent(msgspec.Struct, frozen=True):
    """Something that happened `time` seconds after the start.

    `pod` is a key, `node` a name, and `by` whoever did it: a component, the pod that made it necessary, or a workload
    as in `ReplicaSet default/web`; None where there is none. What fails for a pod or a workload as it did before, and
    nothing in the cluster has changed, is told once, as the API server's own Events are: `count` says how often it
    happened, and `last_time` when it did last.
    """

    time: int | float
    reason: str
    pod: str | None
    node: str | None
    by: str | None
    message: str
    count: int
    last_time: int | float

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON shows it."""
        return {
            "time": self.time,
            "reason": self.reason,
            "pod": self.pod,
            "node": self.node,
            "by": self.by,
            "message": self.message,
            "count": self.count,
            "lastTime": self.last_time,
        }


def subject_of(event: SimEvent) -> str | None:
    """Whom an event is about: a pod, or the workload whose pods could not be made; None for nobody."""
    return event.pod or (event.by if event.reason in _REPEATED else None)


def again(before: SimEvent, event: SimEvent) -> SimEvent:
    """Two events that are one and the same, told as one."""
    return msgspec.structs.replace(before, count=before.count + event.count, last_time=event.last_time)


def is_failure(event: SimEvent) -> bool:
    """Whether it tells that something was tried in vain, which is going to be tried again."""
    return event.reason in _REPEATED


def is_repeated(before: SimEvent, event: SimEvent) -> bool:
    """Whether what happens is what happened before, once more."""
    return event.reason in _REPEATED and (event.reason, event.node, event.by, event.message) == (
        before.reason,
        before.node,
        before.by,
        before.message,
    )
