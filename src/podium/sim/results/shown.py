"""What results have in common that are shown to people, and written as JSON."""

from __future__ import annotations

import msgspec

from podium.api.times import format_time

_SECOND = 10**9


class Shown(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A value that JSON shows field by field, without those of which there is nothing to say."""


def shown_time(time_ns: int) -> str:
    """The time as people read it, not before it."""
    return format_time(-(-time_ns // _SECOND) * _SECOND)
