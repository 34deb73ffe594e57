"""Tables as kubectl prints them."""

from __future__ import annotations

from typing import Any

from podium.server.tables.columns import table_of
from podium.store.api_resources import BUILT_IN, APIResource
from tests.store.objects import HOUR, Raw

NOW = 500_000 * HOUR
"""2027-01-15T08:00:00Z."""

AN_HOUR_AGO = "2027-01-15T07:00:00Z"


def columns(of: APIResource | str, group: str = "", *, wide: bool = True) -> list[str]:
    """Return the names of a kind's columns."""
    table = table_of(_resource(of, group), [], NOW)
    return [column["name"] for column in table["columnDefinitions"] if wide or not column["priority"]]


def row(of: APIResource | str, raw: Raw, group: str = "") -> dict[str, Any]:
    """Return what each column shows of an object that was created an hour ago."""
    raw = {**raw, "metadata": {"name": "a", "creationTimestamp": AN_HOUR_AGO, **raw.get("metadata", {})}}
    (found,) = table_of(_resource(of, group), [raw], NOW)["rows"]
    return dict(zip(columns(of, group), found["cells"], strict=True))


def _resource(of: APIResource | str, group: str) -> APIResource:
    return BUILT_IN[group, of] if isinstance(of, str) else of
