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


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=60), st.integers(0, 60), st.integers(1, 8))
def test_filters_and_scores_miss_no_change_but_those_of_the_ranking(
    changes: list[tuple[int, bool]], reader: int, limit: int
) -> None:
    log = ChangeLog(limit)
    position = 0
    for number, (row, is_visible) in enumerate(changes):
        if number == reader:
            position = log.position
        (log.touch if is_visible else log.rerank)(row)

    missed = log.visible_since(position)

    later = changes[position:]
    assert missed == (None if log.entries_since(position) is None else [row for row, is_visible in later if is_visible])


def test_a_reader_that_is_current_missed_nothing() -> None:
    log = ChangeLog()
    log.touch(3)

    missed = log.since(log.position)

    assert missed is not None
    assert missed.tolist() == []
