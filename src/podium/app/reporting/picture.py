"""What a page shows: stories side by side, a decision, or runs; and what it has to say in words."""

from __future__ import annotations

from typing import Any

import msgspec

from podium.api.basis import Caveat
from podium.api.errors import escape
from podium.app.reporting.story import Story

SCHEMA_VERSION = 1
"""The version of a page's data; page and data come in one file, and so agree."""

_LONGEST = 4_000


class Table(msgspec.Struct, frozen=True, rename="camel"):
    """Rows under headings; numbers stand to the right. `subjects` are what rows are about, for a click on one."""

    title: str
    headings: list[str]
    rows: list[list[str | int | float | None]]
    note: str = ""
    subjects: list[str] = []


class Picture(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A page. `command` is what made it, `headline` what it says in a line, `facts` what else is to be said first."""

    command: str
    headline: str
    facts: list[str] = []
    tables: list[Table] = []
    stories: list[Story] = []
    decision: dict[str, Any] | None = None
    rests_on: list[str] = []
    text: str = ""
    schema_version: int = SCHEMA_VERSION


def told(caveats: tuple[Caveat, ...]) -> list[str]:
    """What an answer rests on, in words."""
    return [escape(caveat.message, _LONGEST) for caveat in caveats]
