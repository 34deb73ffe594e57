"""When a node is announced to go down for maintenance, or to be retired.

Source: controlled-rescheduling.md, Example use cases ("a known or speculated future event").
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.times import parse_time

MAINTENANCE_TIME = "podium.dev/maintenance-time"
"""The annotation of a node: when it will go down, as a time such as 2026-01-31T09:30:00Z."""


def maintenance_ns(annotations: Mapping[str, str]) -> int | None:
    """When the node will go down; None where nothing is announced, or nothing that can be read."""
    text = annotations.get(MAINTENANCE_TIME)
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        return None


def maintenance_problem(annotations: Mapping[str, str]) -> str:
    """What is wrong with the announcement, which then counts as none; "" if nothing is."""
    text = annotations.get(MAINTENANCE_TIME)
    if text is None:
        return ""
    try:
        parse_time(text)
    except ValueError as error:
        return str(error)
    return ""
