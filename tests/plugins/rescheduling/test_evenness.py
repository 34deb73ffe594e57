"""The number of moves until pods are spread evenly enough."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from podium.plugins.rescheduling.demand_kinds import evenness
from tests.fuzzing import Effort, efforts


def by_trying(pods: tuple[int, ...], max_skew: int) -> int:
    """Return the same by looking at all that one move, two moves and so on lead to."""
    reached, moves = {pods}, 0
    while not any(max(found) - min(found) <= max_skew for found in reached):
        reached = {
            tuple(number - (place == source) + (place == target) for place, number in enumerate(found))
            for found in reached
            for source in range(len(found))
            for target in range(len(found))
            if found[source] and source != target
        }
        moves += 1
    return moves


@efforts(50)
def test_the_evenness_is_the_smallest_sufficient_number_of_moves(effort: Effort) -> None:
    @effort
    @given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(1, 3))
    def check(pods: list[int], max_skew: int) -> None:
        assert evenness(Counter(pods), max_skew).moves == by_trying(tuple(pods), max_skew)

    check()


def test_a_single_domain_cannot_be_uneven() -> None:
    assert evenness({}, 1).moves == 0
    assert evenness({9: 1}, 1).moves == 0


def test_numbers_beyond_all_reason_take_no_longer() -> None:
    assert evenness({10**6: 1, 0: 1}, 2**31 - 1).moves == 0
    assert evenness({10**9: 1, 0: 1}, 1).moves == 5 * 10**8
