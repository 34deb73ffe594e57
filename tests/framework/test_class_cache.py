"""What is kept of a row, and for how long."""

from __future__ import annotations

import numpy as np
import pytest

from podium.cluster.arrays import Int64s
from podium.cluster.change_log import ChangeLog
from podium.framework.class_cache import ClassCache, KeptRows

COUNT = 20


class Source:
    """Ten times the row number, plus what was added; ``asked`` holds the rows asked for, None for all."""

    def __init__(self) -> None:
        self.added = np.zeros(COUNT, dtype=np.int64)
        self.asked: list[list[int] | None] = []

    def __call__(self, rows: Int64s | None) -> Int64s:
        self.asked.append(None if rows is None else rows.tolist())
        some = np.arange(COUNT, dtype=np.int64) if rows is None else rows
        return 10 * some + self.added[some]

    def change(self, row: int, log: ChangeLog) -> None:
        self.added[row] += 1
        log.touch(row)


def kept(*, whole: bool = False) -> KeptRows:
    return KeptRows(np.empty(0, dtype=np.int64), whole=whole)


def test_rows_are_computed_once_and_then_only_where_they_changed() -> None:
    rows, log, source = kept(), ChangeLog(), Source()
    assert rows.refresh(log, COUNT, source) is None
    unchanged = rows.refresh(log, COUNT, source)
    assert unchanged is not None
    assert len(unchanged) == 0
    source.change(3, log)
    source.change(1, log)
    source.change(3, log)

    changed = rows.refresh(log, COUNT, source)

    assert source.asked == [None, [1, 3]]
    assert changed is not None
    assert changed.tolist() == [1, 3]
    assert (rows.values == source(None)).all()


def test_all_rows_are_computed_again_when_many_changed_or_there_are_more_of_them() -> None:
    rows, log, source = kept(), ChangeLog(), Source()
    rows.refresh(log, COUNT - 1, lambda _: np.zeros(COUNT - 1, dtype=np.int64))
    rows.refresh(log, COUNT, source)
    for row in range(COUNT // 4 + 1):
        source.change(row, log)

    rows.refresh(log, COUNT, source)

    assert source.asked == [None, None]


def test_all_rows_are_computed_again_when_one_row_can_change_all_values() -> None:
    rows, log, source = kept(whole=True), ChangeLog(), Source()
    rows.refresh(log, COUNT, source)
    source.change(3, log)

    rows.refresh(log, COUNT, source)

    assert source.asked == [None, None]


def test_all_rows_are_computed_again_when_the_log_no_longer_reaches_back() -> None:
    rows, log, source = kept(), ChangeLog(limit=2), Source()
    rows.refresh(log, COUNT, source)
    for _ in range(5):
        source.change(3, log)

    rows.refresh(log, COUNT, source)

    assert source.asked == [None, None]


def test_a_computation_that_fails_leaves_the_rows_out_of_date() -> None:
    rows, log, source = kept(), ChangeLog(), Source()
    rows.refresh(log, COUNT, source)
    source.change(3, log)

    def fail(_: Int64s | None) -> Int64s:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rows.refresh(log, COUNT, fail)
    rows.refresh(log, COUNT, source)

    assert rows.values[3] == 31


def test_the_classes_used_last_are_kept() -> None:
    cache = ClassCache(limit=2)
    first = cache.rows(1, "key")
    cache.rows(2, "key")
    assert cache.rows(1, "key") is first

    cache.rows(3, "key")

    assert cache.rows(1, "key") is first
    assert len(cache.rows(2, "key").values) == 0


def test_rows_are_kept_by_class_and_key() -> None:
    cache = ClassCache(limit=2)

    assert cache.rows(1, "a") is cache.rows(1, "a")
    assert cache.rows(1, "a") is not cache.rows(1, "b")
    assert cache.rows(1, "a") is not cache.rows(2, "a")
