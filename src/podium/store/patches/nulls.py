"""Nulls in patched objects, which stand for nothing, and how deep a patch can make them."""

from __future__ import annotations

from typing import Any

import msgspec

from podium.api.meta import Raw

_ENCODER = msgspec.json.Encoder()


def without_nulls(patched: Raw, before: Raw, section: str = "") -> Raw:
    """The patched object without entries that are null; with a `section`, what was left as `before` stays elsewhere."""
    cleaned = {}
    for name, value in patched.items():
        if section and name != section and value is before.get(name):
            cleaned[name] = value
        elif value is not None:
            cleaned[name] = _cleaned(value) if _may_have_nulls(value) else value
    return cleaned


def check_depth(value: Any, depth: int) -> None:
    """Raise RecursionError for a value that is nested deeper than `depth`."""
    try:
        written = _ENCODER.encode(value)
    except UnicodeEncodeError:
        written = b"[" * (depth + 1)
    # What has few brackets is not deep; this is told in C.
    if written.count(b"{") + written.count(b"[") >= depth:
        _descend(value, depth)


def _descend(value: Any, depth: int) -> None:
    if not depth:
        raise RecursionError
    if isinstance(value, dict):
        value = [one for one in value.values() if one is not None]
    if isinstance(value, list):
        for one in value:
            _descend(one, depth - 1)


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cleaned(one) for key, one in value.items() if one is not None}
    return [_cleaned(one) for one in value] if isinstance(value, list) else value


def _may_have_nulls(value: Any) -> bool:
    """Whether there may be nulls in it; that there are none is told in C."""
    if not isinstance(value, (dict, list)):
        return False
    try:
        return b"null" in _ENCODER.encode(value)
    except UnicodeEncodeError:
        return True
