"""The work that a pod would lose by a move, by its annotations.

A Job's pod starts its work again when it is recreated, unless it saves its work and declares that.

Source: controlled-rescheduling.md, Example use cases (a pod that makes progress is moved at a price).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.api.errors import shown
from podium.api.times import parse_duration, parse_time
from podium.cluster.pods import NOT_STARTED_NS, PodRecord

WORK_IN_PROGRESS = "podium.dev/work-in-progress"
"""Annotation of a pod: "true" if a move would undo its work, as for pods of Jobs; "false" if not."""

CHECKPOINT_TIME = "podium.dev/checkpoint-time"
"""Annotation of a pod: when it last saved its work, an RFC 3339 time. Later work is lost by a move."""

CHECKPOINT_INTERVAL = "podium.dev/checkpoint-interval"
"""Annotation of a pod: how often it saves its work, such as "10m". At most that much is lost by a move."""

_JOB = "Job"
_TRUTHS = {"true": True, "false": False}


def is_at_work(pod: PodRecord) -> bool:
    """Return whether the pod's work is in progress. Raises ValueError for an invalid annotation."""
    value = pod.annotations.get(WORK_IN_PROGRESS)
    if value is None:
        is_saving = CHECKPOINT_TIME in pod.annotations or CHECKPOINT_INTERVAL in pod.annotations
        return is_saving or (pod.controller is not None and pod.controller.kind == _JOB)
    if value not in _TRUTHS:
        raise ValueError(f'its annotation {WORK_IN_PROGRESS} is {shown(value)}; it must be "true" or "false"')
    return _TRUTHS[value]


def lost_work_ns(pod: PodRecord, now: int) -> int | None:
    """Return how much work, in time, a move would lose; None if the pod does not declare it.

    The time of the last checkpoint takes precedence over the interval. The result is at most the time for which the pod
    has run. Raises ValueError for an invalid annotation.
    """
    return unsaved_ns(pod.annotations, None if pod.start_ns == NOT_STARTED_NS else pod.start_ns, now)


def unsaved_ns(annotations: Mapping[str, str], start_ns: int | None, now: int) -> int | None:
    """Return the same by a pod's annotations and its start, None for a pod that has not started. Raises ValueError."""
    last, interval = annotations.get(CHECKPOINT_TIME), annotations.get(CHECKPOINT_INTERVAL)
    if last is None and interval is None:
        return None
    if last is not None:
        lost_ns = now - _read(parse_time, CHECKPOINT_TIME, last, "a time such as 2026-01-31T08:00:00Z")
    else:
        lost_ns = _read(parse_duration, CHECKPOINT_INTERVAL, str(interval), 'a time such as "10m"')
    ran_ns = lost_ns if start_ns is None else now - start_ns
    return max(0, min(lost_ns, ran_ns))


def _read(parse: Callable[[str], int], name: str, text: str, right: str) -> int:
    try:
        return parse(text)
    except ValueError:
        raise ValueError(f"its annotation {name} is {shown(text)}; it must be {right}") from None
