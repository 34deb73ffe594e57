"""Whether a Deployment gets on: its condition Progressing, by which clients see how a rollout goes.

Source: pkg/controller/deployment/progress.go, util/deployment_util.go (DeploymentComplete, DeploymentProgressing,
DeploymentTimedOut).
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.times import format_time, parse_time

PROGRESSING = "Progressing"
_AVAILABLE = "NewReplicaSetAvailable"
_PAUSED, _RESUMED = "DeploymentPaused", "DeploymentResumed"
_LATE = "ProgressDeadlineExceeded"
_DEFAULT_SECONDS, _NO_DEADLINE = 600, 2**31 - 1
_SECOND = 10**9


def progress(spec: Raw, name: str, before: Raw, after: Raw, now: int) -> tuple[Raw, int | None]:
    """The condition of a Deployment whose ReplicaSet has this name, "" while there is none; and when it would be late.

    `before` and `after` are its status as it was, and as it is about to be written.
    """
    listed: list[Raw] = before.get("conditions", [])
    known = next((entry for entry in listed if entry.get("type") == PROGRESSING), {})
    known_reason = known.get("reason")
    if spec.get("paused"):
        if known_reason == _PAUSED:
            return known, None
        return _condition("Unknown", _PAUSED, "Deployment is paused", now), None
    if known_reason == _PAUSED:
        known = _condition("Unknown", _RESUMED, "Deployment is resumed", now)
    is_about_this = bool(known) and f'"{name}"' in str(known.get("message"))
    if known_reason == _AVAILABLE and is_about_this and _all_updated(after):
        return known, None
    what = f'ReplicaSet "{name}"'
    if name and _is_complete(spec, after):
        return _condition("True", _AVAILABLE, f"{what} has successfully progressed.", now), None
    if name and not is_about_this:
        found = _condition("True", "NewReplicaSetCreated", f'Created new replica set "{name}"', now)
    elif not known or _has_progressed(before, after):
        found = _condition("True", "ReplicaSetUpdated", f"{what} is progressing." if name else "", now)
    else:
        found = known
    return _late(spec, what, found, now)


def _late(spec: Raw, what: str, found: Raw, now: int) -> tuple[Raw, int | None]:
    """The condition, or that nothing has come about for too long; and when that will be."""
    seconds = spec.get("progressDeadlineSeconds", _DEFAULT_SECONDS)
    if found["reason"] == _LATE or seconds == _NO_DEADLINE:
        return found, None
    late_ns = _updated_ns(found, now) + seconds * _SECOND
    if now < late_ns:
        return found, late_ns
    return _condition("False", _LATE, f"{what} has timed out progressing.", now), None


def _condition(status: str, reason: str, message: str, now: int) -> Raw:
    return {
        "type": PROGRESSING,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": format_time(now),
    }


def _updated_ns(condition: Raw, now: int) -> int:
    """When the condition was last confirmed; what cannot be read counts from now on."""
    try:
        return parse_time(str(condition.get("lastUpdateTime") or condition.get("lastTransitionTime")))
    except ValueError:
        return now


def _count(status: Raw, name: str) -> int:
    value = status.get(name)
    return value if isinstance(value, int) else 0


def _all_updated(status: Raw) -> bool:
    return _count(status, "replicas") == _count(status, "updatedReplicas")


def _is_complete(spec: Raw, status: Raw) -> bool:
    wanted = spec.get("replicas", 1)
    return all(_count(status, name) == wanted for name in ("updatedReplicas", "replicas", "availableReplicas"))


def _has_progressed(before: Raw, after: Raw) -> bool:
    def old(status: Raw) -> int:
        return _count(status, "replicas") - _count(status, "updatedReplicas")

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old(after) < old(before) or any(_count(after, name) > _count(before, name) for name in grown)
