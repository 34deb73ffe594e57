"""Array programs over small numbers against the plain loops that they stand for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.arrays import distinct, in_order


@given(st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 5), max_size=70))
def test_places_are_in_the_order_of_their_keys_and_equal_ones_stay_as_they_are(keys: list[int]) -> None:
    found = in_order(np.array(keys, dtype=np.int64))

    assert found.tolist() == sorted(range(len(keys)), key=keys.__getitem__)


@given(st.lists(st.integers(0, 9), max_size=30))
def test_different_values_come_once_and_each_knows_its_place(values: list[int]) -> None:
    found, places = distinct(np.array(values, dtype=np.int64), 10)

    assert found.tolist() == sorted(set(values))
    assert [found.tolist()[place] for place in places.tolist()] == values
