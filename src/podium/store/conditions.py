"""The list of conditions in an object's status."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.meta import Raw
from podium.api.times import format_time


def with_condition(conditions: Sequence[Raw], condition: Raw, now: int) -> list[Raw]:
    """The conditions with `condition` in place of the one of its type, or at the end.

    `lastTransitionTime` moves to `now` only when the condition's status changes (pkg/api/v1/pod/util.go,
    UpdatePodCondition).
    """
    updated = {**condition, "lastTransitionTime": format_time(now)}
    result = list(conditions)
    for index, old in enumerate(result):
        if old.get("type") == condition["type"]:
            if old.get("status") == condition["status"] and "lastTransitionTime" in old:
                updated["lastTransitionTime"] = old["lastTransitionTime"]
            result[index] = updated
            return result
    result.append(updated)
    return result
