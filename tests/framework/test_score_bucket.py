"""A bucket of nodes that returns the node at any position of its order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.nodes import NameOrder
from podium.framework.cache.rankings import ClassRanking, ScoreBucket
from tests.fuzzing import Effort, efforts

# Two blocks.
COUNT = 5_000
HASHES = np.random.default_rng(0).integers(0, 2**63, COUNT).astype(np.uint64)
ORDER = NameOrder(np.arange(COUNT, dtype=np.int64), HASHES)
RANKS = st.integers(0, COUNT - 1) | st.integers(4_090, 4_100)
RANKING = ClassRanking(ORDER, COUNT)


def bucket(*ranks: int) -> ScoreBucket:
    return ScoreBucket((), 0, np.array(sorted(ranks), dtype=np.int64), COUNT)


def rows(buckets: list[ScoreBucket]) -> list[int]:
    return [RANKING.nth(buckets, place) for place in range(sum(one.size for one in buckets))]


def test_the_order_is_that_of_the_names_hashes_and_leaves_free_rows_out() -> None:
    order = NameOrder(np.array([0, 2, 3]), np.array([30, 0, 10, 20], dtype=np.uint64))

    assert list(order.rows) == [2, 3, 0]
    assert list(order.rank_of) == [2, -1, 0, 1]


def test_nodes_with_equal_hashes_are_in_the_order_of_their_rows() -> None:
    hashes = np.array([3, 1] * 40, dtype=np.uint64)

    order = NameOrder(np.arange(80), hashes)

    assert list(order.rows) == [*range(1, 80, 2), *range(0, 80, 2)]


@pytest.mark.parametrize("least", [0, 1 << 63], ids=["near", "far apart"])
def test_nodes_are_in_the_order_of_their_hashes_whichever_bits_these_differ_in(least: int) -> None:
    hashes = np.array([(7 * number % 100) + least * (number % 2) for number in range(100)], dtype=np.uint64)
    spread = hashes * np.uint64(0x9E3779B97F4A7C15)

    for given_hashes in (hashes, spread):
        order = NameOrder(np.arange(100), given_hashes)

        assert list(order.rows) == sorted(range(100), key=lambda row: (int(given_hashes[row]), row))


@efforts(25)
def test_any_place_is_found_after_any_changes(effort: Effort) -> None:
    @effort
    @given(st.lists(st.tuples(st.integers(0, 2), RANKS), max_size=60), st.integers(0, 60))
    def check(changes: list[tuple[int, int]], drawn_after: int) -> None:
        buckets, plain = [bucket(), bucket(), bucket()], [set[int](), set[int](), set[int]()]
        for number, (which, rank) in enumerate(changes):
            if number == drawn_after and plain[0]:
                RANKING.nth(buckets[:1], 0)
            if rank in plain[which]:
                buckets[which].remove(rank)
                plain[which].discard(rank)
            elif not any(rank in ranks for ranks in plain):
                buckets[which].add(rank)
                plain[which].add(rank)
        assert [one.size for one in buckets] == [len(ranks) for ranks in plain]
        for some in ([0], [1], [0, 1], [0, 1, 2]):
            expected = sorted(rank for which in some for rank in plain[which])
            assert rows([buckets[which] for which in some]) == [ORDER.rows[rank] for rank in expected]

    check()


def test_a_rank_beyond_the_node_count_raises_an_error() -> None:
    for buckets in ([bucket(1)], [bucket(1), bucket(2)]):
        with pytest.raises(IndexError, match="fewer nodes"):
            RANKING.nth(buckets, 2)


def test_taking_off_a_node_that_is_not_there_raises() -> None:
    one = bucket(1, 5)

    with pytest.raises(LookupError):
        one.remove(3)
