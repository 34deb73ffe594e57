"""The text form of the indexes of Indexed Jobs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.controllers.workloads.job_pods import free_indexes, read_indexes, write_indexes


@pytest.mark.parametrize(
    ("indexes", "text"), [((), ""), ((3,), "3"), ((1, 2), "1,2"), ((5, 1, 3, 4), "1,3-5"), ((0, 2, 4), "0,2,4")]
)
def test_runs_of_more_than_two_are_written_as_ranges(indexes: tuple[int, ...], text: str) -> None:
    assert write_indexes(indexes) == text


@given(st.sets(st.integers(0, 60)))
def test_a_written_avoid_list_is_read_back(indexes: set[int]) -> None:
    assert read_indexes(write_indexes(indexes), 100) == indexes


def test_indexes_that_a_job_no_longer_has_are_left_out() -> None:
    assert read_indexes("1,3-8", 5) == {1, 3, 4}
    assert read_indexes("0-999999999999", 3) == {0, 1, 2}


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1-b", "b-1", "5-3", ","])
def test_unreadable_completion_indexes_are_skipped(text: str) -> None:
    assert read_indexes(text, 10) <= {1}


def test_the_lowest_free_indexes_come_first() -> None:
    assert free_indexes(2, 6, {0, 2}) == [1, 3]
    assert free_indexes(9, 4, {1}) == [0, 2, 3]
