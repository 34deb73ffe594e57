"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """What the patch makes of the target; neither is changed, and the result shares with both what it can.

    An object changes field by field, null removes a field, and everything else replaces what was there.
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = merge_patch(result.get(field), value)
    return result
