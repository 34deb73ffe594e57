"""The maintenance time that a node's annotation announces."""

import pytest

from podium.api.node import MAINTENANCE_TIME, maintenance_ns
from podium.api.times import parse_time

TIME = "2026-01-31T09:30:00Z"


def test_the_time_is_that_of_the_annotation() -> None:
    assert maintenance_ns({MAINTENANCE_TIME: TIME}) == parse_time(TIME)


def test_a_node_without_the_annotation_announces_no_maintenance() -> None:
    assert maintenance_ns({}) is None


@pytest.mark.parametrize("text", ["", "soon", "2026-01-31", "2026-13-01T00:00:00Z", "9" * 100_000])
def test_an_invalid_time_announces_no_maintenance(text: str) -> None:
    assert maintenance_ns({MAINTENANCE_TIME: text}) is None
