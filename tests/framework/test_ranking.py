"""The ranking of nodes by bucket and total, against a plain table."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.arrays import stable_hash
from podium.cluster.nodes import NameOrder
from podium.framework.cache.rankings import ClassRanking, Totals
from podium.framework.cache.row_filters import NO_FIT
from tests.fuzzing import Effort, efforts

COUNT = 12
HASHES = np.array([stable_hash(f"n{number}") for number in range(COUNT)], dtype=np.uint64)
ORDER = NameOrder(np.arange(COUNT, dtype=np.int64), HASHES)

Table = dict[int, tuple[tuple[int, int], int]]
ENTRIES = st.tuples(st.tuples(st.integers(-1, 1), st.integers(0, 1)), st.integers(0, 3))


def assert_holds(ranking: ClassRanking, table: Table) -> None:
    assert {key: cell.size for key, cell in ranking.cells.items()} == Counter(key for key, _ in table.values())
    for key, cell in ranking.cells.items():
        totals = {row: total for row, (where, total) in table.items() if where == key}
        best = max(totals.values())
        assert cell.top.total == best
        for total in set(totals.values()):
            there = sorted((ORDER.rank_of[row] for row, one in totals.items() if one == total))
            assert [ranking.nth([cell.buckets[total]], place) for place in range(len(there))] == [
                ORDER.rows[r] for r in there
            ]
        assert cell.buckets.keys() == set(totals.values())


@efforts(25)
def test_rows_are_where_they_were_put_last(effort: Effort) -> None:
    @effort
    @given(
        st.dictionaries(st.integers(0, COUNT - 1), ENTRIES),
        st.lists(st.tuples(st.integers(0, COUNT - 1), st.none() | ENTRIES), max_size=30),
    )
    def check(filled: Table, changes: list[tuple[int, tuple[tuple[int, int], int] | None]]) -> None:
        ranking, table = ClassRanking(ORDER, COUNT), dict(filled)
        rows = np.array(list(filled), dtype=np.int64)
        columns = [np.array([key[n] for key, _ in filled.values()], dtype=np.int64) for n in range(2)]
        ranking.fill(rows, np.array([total for _, total in filled.values()], dtype=np.int64), columns)
        assert_holds(ranking, table)
        for row, entry in changes:
            if entry is None:
                ranking.remove(row)
                table.pop(row, None)
            else:
                ranking.put(row, *entry)
                table[row] = entry
            assert_holds(ranking, table)

    check()


@efforts(25)
def test_the_best_total_is_the_one_of_a_full_search(effort: Effort) -> None:
    @effort
    @given(
        st.dictionaries(st.integers(0, COUNT - 1), st.integers(0, 3)),
        st.lists(
            st.tuples(st.dictionaries(st.integers(0, COUNT - 1), st.integers(NO_FIT, 3)), st.integers(0, 99)),
            max_size=20,
        ),
    )
    def check(filled: dict[int, int], changes: list[tuple[dict[int, int], int]]) -> None:
        totals = Totals(ORDER)
        table = dict(filled)
        totals.write(np.array(list(filled), dtype=np.int64), np.array(list(filled.values()), dtype=np.int64))
        for changed, lot in changes:
            totals.put(list(changed), list(changed.values()))
            table |= changed
            highest = max(table.values(), default=NO_FIT)
            best = sorted(ORDER.rank_of[row] for row, total in table.items() if total == highest)
            wanted = None if highest == NO_FIT else ORDER.rows[best[lot % len(best)]]
            assert totals.best(lot) == wanted

    check()
