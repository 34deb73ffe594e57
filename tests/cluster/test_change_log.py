"""The rows that changed since the last read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.arrays import ChangeLog


@given(st.lists(st.integers(0, 5), max_size=60), st.lists(st.integers(0, 60), max_size=3), st.integers(1, 8))
def test_a_change_log_returns_every_changed_row_or_requests_a_full_scan(
    touched: list[int], readers: list[int], limit: int
) -> None:
    log = ChangeLog(limit)
    positions = {}
    for number, row in enumerate(touched):
        if number in readers:
            positions[number] = log.position
        log.touch(row)

    for number, position in positions.items():
        missed = log.since(position)
        assert missed is None or missed.tolist() == sorted(set(touched[number:]))
        assert missed is not None or len(touched) - number > limit


def test_a_reader_that_is_current_missed_nothing() -> None:
    log = ChangeLog()
    log.touch(3)

    missed = log.since(log.position)

    assert missed is not None
    assert missed.tolist() == []
