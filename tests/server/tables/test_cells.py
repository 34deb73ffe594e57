"""The cells of tables."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.times import human_duration
from podium.server.tables.cells import access_modes, label_selector, labels, some

SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0, "0s"),
        (SECOND - 1, "0s"),
        (-SECOND, "0s"),
        (-2 * SECOND, "<invalid>"),
        (2 * MINUTE - SECOND, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + SECOND, "2m1s"),
        (10 * MINUTE - SECOND, "9m59s"),
        (10 * MINUTE, "10m"),
        (3 * HOUR - SECOND, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + MINUTE, "3h1m"),
        (8 * HOUR - SECOND, "7h59m"),
        (8 * HOUR, "8h"),
        (2 * DAY - SECOND, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY - SECOND, "7d23h"),
        (8 * DAY, "8d"),
        (2 * YEAR - SECOND, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR - SECOND, "7y364d"),
        (8 * YEAR, "8y"),
    ],
)
def test_durations_have_about_two_units(duration: int, text: str) -> None:
    assert human_duration(duration) == text


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, "<none>"),
        ({}, "<none>"),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["2", "1"]}]}, "a in (1,2)"),
        ({"matchExpressions": [{"key": "a", "operator": "Nothing"}]}, "<error>"),
        ("text", "<error>"),
    ],
)
def test_selectors_are_shown_as_people_write_them(selector: Any, text: str) -> None:
    assert label_selector(selector) == text


def test_labels_are_shown_in_order() -> None:
    assert labels({"b": "2", "a": "1"}) == "a=1,b=2"
    assert labels({}) == "<none>"


def test_access_modes_are_short_and_in_order() -> None:
    assert access_modes(["ReadWriteMany", "ReadWriteOnce", "Other"]) == "RWO,RWX"


def test_a_cell_shows_the_first_of_many_values() -> None:
    assert some(["a", "b", "c"]) == "a,b,c"
    assert some(["a", "b", "c", "d"]) == "a,b,c + 1 more..."
