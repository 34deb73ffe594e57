"""What a pod's status says of its containers once they have failed (core/v1 ContainerStatus).

All containers of a pod start, fail and end together. Of pods whose containers never failed nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from podium.api.meta import Int32, Narrow, Raw
from podium.api.pod import Pod
from podium.api.pod_health import CRASH_LOOP, OUT_OF_MEMORY
from podium.api.times import format_time, parse_time

CRASHED: Raw = {"exitCode": 1, "reason": "Error"}
"""How containers ended that exited with failure."""

OUT_OF_MEMORY_KILLED: Raw = {"exitCode": 137, "reason": OUT_OF_MEMORY}
"""How containers ended that were killed because they used more memory than they may."""

COMPLETED: Raw = {"exitCode": 0, "reason": "Completed"}
"""How containers ended that exited with success."""

KILLED: Raw = {"exitCode": 137, "reason": "Error"}
"""How containers ended that were killed."""

LOST: Raw = {"exitCode": 255, "reason": "Unknown"}
"""How containers ended whose machine stopped."""


class _Running(Narrow, frozen=True, kw_only=True):
    started_at: str | None = None


class _State(Narrow, frozen=True, kw_only=True):
    running: _Running | None = None


class _ContainerStatus(Narrow, frozen=True, kw_only=True):
    restart_count: Int32 = 0
    state: _State = _State()


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often a pod's containers were started again, and when last; None while they are not running."""

    count: int = 0
    started_ns: int | None = None


_NO_RESTARTS = Restarts()


def read_restarts(raw: Raw) -> Restarts:
    """What a pod's status says of restarts; where nobody can read that, it says nothing."""
    listed = _listed(raw)
    if not listed:
        return _NO_RESTARTS
    try:
        statuses = msgspec.convert(listed, list[_ContainerStatus])
        started = [parse_time(status.state.running.started_at or "") for status in statuses if status.state.running]
    except (msgspec.ValidationError, ValueError):
        return _NO_RESTARTS
    count = max((status.restart_count for status in statuses), default=0)
    return Restarts(count, max(started, default=None) if count else None)


def running(started_ns: int) -> Raw:
    """The state of containers that run since ``started_ns``."""
    return {"running": {"startedAt": format_time(started_ns)}}


def waiting(pod: Pod, wait_ns: int) -> Raw:
    """The state of containers that wait so long before they are started again."""
    message = f"back-off {wait_ns // 10**9}s restarting failed containers of pod {pod.key}"
    return {"waiting": {"reason": CRASH_LOOP, "message": message}}


def terminated(exit_: Raw, now: int | None = None) -> Raw:
    """The state of containers that ended as ``exit_`` says, where it is known when."""
    return {"terminated": exit_ if now is None else {**exit_, "finishedAt": format_time(now)}}


def container_statuses(
    pod: Pod, raw: Raw, restarts: int, state: Raw, last_state: Raw | None = None, *, is_ready: bool = False
) -> tuple[Raw, ...]:
    """The statuses of all containers, with what ``raw``, the pod, says of them besides; also of their end before."""
    last = {} if last_state is None else {"lastState": last_state}
    known = {str(status.get("name")): status for status in _listed(raw)}
    return tuple(
        {
            "image": container.image,
            "imageID": "",
            **known.get(container.name, {}),
            "name": container.name,
            "ready": is_ready,
            "restartCount": restarts,
            "state": state,
            **last,
        }
        for container in pod.spec.containers
    )


def _listed(raw: Raw) -> Sequence[Raw]:
    found = raw.get("status", {}).get("containerStatuses")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
