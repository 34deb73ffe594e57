"""The list of conditions in an object's status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.api.meta import Raw
from podium.api.times import format_time


def is_true(conditions: object, type_: str) -> bool:
    """Return whether the condition of that type has the status True."""
    listed = conditions if isinstance(conditions, list | tuple) else ()
    return any(condition.get("type") == type_ and condition.get("status") == "True" for condition in listed)


def condition_of(conditions: Iterable[Raw], type_: str) -> Raw:
    """Return the condition of a type, empty without one."""
    return next((condition for condition in conditions if condition.get("type") == type_), {})


def with_condition(conditions: Sequence[Raw], condition: Raw, now: int) -> list[Raw]:
    """Return the conditions with `condition` in place of the one of its type, or appended.

    `lastTransitionTime` becomes `now` only if the condition's status changes (pkg/api/v1/pod/util.go,
    UpdatePodCondition).
    """
    return with_conditions(conditions, (condition,), now)


def with_conditions(conditions: Sequence[Raw], changed: Iterable[Raw], now: int) -> list[Raw]:
    """Return the conditions with each changed condition applied in turn."""
    result = list(conditions)
    time = format_time(now)
    for condition in changed:
        type_, updated = condition["type"], {**condition, "lastTransitionTime": time}
        for index, old in enumerate(result):
            if old.get("type") == type_:
                if old.get("status") == condition["status"] and "lastTransitionTime" in old:
                    updated["lastTransitionTime"] = old["lastTransitionTime"]
                result[index] = updated
                break
        else:
            result.append(updated)
    return result
