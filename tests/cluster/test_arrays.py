"""Array code over small numbers against plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.arrays import column_ranks, distinct, lexsort

ROWS = st.tuples(
    st.integers(-3, 3), st.sampled_from((-(2**63), 0, 2**40, 2**63 - 1)) | st.integers(0, 2**63 - 1), st.integers(0, 9)
)


@given(st.lists(ROWS, min_size=1, max_size=70), st.integers(1, 8))
def test_rows_are_in_the_order_of_their_keys_whether_or_not_they_go_into_one(
    rows: list[tuple[int, int, int]], times: int
) -> None:
    keys = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]

    found = lexsort(*keys * times)

    assert found.tolist() == sorted(range(len(rows)), key=rows.__getitem__)


def test_no_rows_are_in_order() -> None:
    assert lexsort(np.empty(0, dtype=np.int64)).tolist() == []


@given(st.lists(st.integers(0, 9), max_size=30))
def test_different_values_come_once_and_each_knows_its_place(values: list[int]) -> None:
    found, places = distinct(np.array(values, dtype=np.int64), 10)

    assert found.tolist() == sorted(set(values))
    assert [found.tolist()[place] for place in places.tolist()] == values


@given(st.lists(ROWS, max_size=30), st.sampled_from((np.int64, np.float64)))
def test_columns_are_ranked_among_the_distinct_ones(rows: list[tuple[int, int, int]], kind: type[np.generic]) -> None:
    table = np.array(rows, dtype=kind).reshape(-1, 3).T

    columns = [tuple(column) for column in table.T.tolist()]
    places = {column: place for place, column in enumerate(sorted(set(columns)))}
    assert column_ranks(table).tolist() == [places[column] for column in columns]
