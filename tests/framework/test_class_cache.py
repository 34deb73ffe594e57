"""The values cached for a row, and their lifetime."""

from __future__ import annotations

from weakref import ref

import numpy as np
import pytest

from podium.cluster.arrays import ChangeLog, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import PodClass
from podium.framework.cache import class_cache
from podium.framework.cache.class_cache import CacheByClass, CachedRows
from tests.builders import pod

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


def kept(*, whole: bool = False) -> CachedRows:
    return CachedRows(whole=whole)


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
    cache, (one, two, three) = CacheByClass[CachedRows](2), classes(3)
    first = cache.get(one, "key", CachedRows)
    second = cache.get(two, "key", CachedRows)
    assert cache.get(one, "key", CachedRows) is first

    cache.get(three, "key", CachedRows)

    assert cache.get(one, "key", CachedRows) is first
    assert cache.get(two, "key", CachedRows) is not second


def test_rows_are_kept_by_class_and_key() -> None:
    cache, (one, two) = CacheByClass[CachedRows](2), classes(2)

    assert cache.get(one, "a", CachedRows) is cache.get(one, "a", CachedRows)
    assert cache.get(one, "a", CachedRows) is not cache.get(one, "b", CachedRows)
    assert cache.get(one, "a", CachedRows) is not cache.get(two, "a", CachedRows)


def test_only_so_many_keys_of_a_class_are_kept() -> None:
    kept_values, (one,) = CacheByClass[list[int]](classes=1, keys=2), classes(1)
    first = kept_values.get(one, "a", list)
    for key in ("b", "c"):
        kept_values.get(one, key, list)

    assert kept_values.get(one, "a", list) is not first


def test_class_caches_are_dropped_with_their_class() -> None:
    cache, (one, two) = CacheByClass[CachedRows](2), classes(2)
    rows = [ref(cache.get(each, "key", CachedRows)) for each in (one, two)]

    del one

    assert [each() is None for each in rows] == [True, False]


def classes(number: int) -> list[PodClass]:
    cluster = Cluster()
    return [cluster.read(pod(f"p{n}", cpu=n + 1)).pod_class for n in range(number)]


def test_debug_mode_reports_values_that_changed_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, log, source = kept(), ChangeLog(), Source()
    rows.refresh(log, COUNT, source)
    monkeypatch.setattr(class_cache, "VERIFIES", True)
    rows.refresh(log, COUNT, source)
    source.added[3] += 1

    with pytest.raises(AssertionError, match="1 cached values are outdated: 30 instead of 31 in row 3"):
        rows.refresh(log, COUNT, source)
