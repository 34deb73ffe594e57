"""Incrementally ordered candidates against sorting all of them each time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from podium.cluster.arrays import stable_hash
from podium.decide.preempting.reprieve import RowTrial
from podium.decide.preempting.trials import CandidateOrder, Key
from tests.fuzzing import long_runs, usual

ROWS = st.integers(0, 19)
KEYS = st.tuples(st.integers(0, 1), st.integers(-1, 1), st.just(7))


def name_hash(row: int) -> int:
    """Return some of them equal."""
    return stable_hash(str(row // 2))


def ordered(keys: dict[int, Key]) -> CandidateOrder:
    rows = np.array(sorted(keys), dtype=np.int64)
    criteria = np.array([keys[row] for row in rows.tolist()], dtype=np.int64).reshape(-1, 3).T
    hashes = np.array([name_hash(row) for row in rows.tolist()], dtype=np.uint64)
    order = CandidateOrder()
    order.fill(rows, np.zeros(len(rows), dtype=np.int64), criteria, hashes)
    return order


def equals(keys: dict[int, Key]) -> list[int]:
    """Those of the best key, in the order in which lots are drawn."""
    best = min(keys.values(), default=None)
    return sorted((row for row, key in keys.items() if key == best), key=lambda row: (name_hash(row), row))


class ChangingCandidates(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[int, Key] = {}
        self.order = ordered({})

    @initialize(keys=st.dictionaries(ROWS, KEYS))
    def begin(self, keys: dict[int, Key]) -> None:
        self.keys = dict(keys)
        self.order = ordered(keys)

    @rule(row=ROWS, key=KEYS)
    def put(self, row: int, key: Key) -> None:
        self.order.remove(row)
        self.order.put(row, RowTrial(0, key), name_hash(row))
        self.keys[row] = key

    @rule(row=ROWS)
    def drop(self, row: int) -> None:
        self.order.remove(row)
        self.keys.pop(row, None)

    @rule(lot=st.integers(0, 2**64 - 1), most=st.integers(0, 4), preferred=st.just(-1) | ROWS)
    def draw(self, lot: int, most: int, preferred: int) -> None:
        found = equals(self.keys)
        row = preferred if preferred in found or not found else found[lot % len(found)]
        assert self.order.draw(lot, most, preferred) == ((row, tuple(found[:most])) if found else None)

    @invariant()
    def a_row_that_has_a_place_gets_no_other(self) -> None:
        for row in sorted(self.keys)[:1]:
            with pytest.raises(ValueError, match=f"row {row} has a place"):
                self.order.put(row, RowTrial(0, (0, 0, 0)), 0)


ChangingCandidates.TestCase.settings = settings(max_examples=usual(60), stateful_step_count=30)
TestChangingCandidates = ChangingCandidates.TestCase


@pytest.mark.fuzz
def test_the_order_stays_right_over_long_runs() -> None:
    long_runs(ChangingCandidates)


def test_all_candidates_come_in_order_as_the_best_are_taken_away() -> None:
    keys: dict[int, Key] = {row: (row % 3, -row % 5, 7) for row in range(20)}
    order, found = ordered(keys), []

    while (drawn := order.draw(0, 1, -1)) is not None:
        row, equals_of_it = drawn
        assert equals_of_it == (row,)
        found.append(row)
        order.remove(row)

    assert found == sorted(keys, key=lambda row: (keys[row], name_hash(row), row))


def test_unused_order_keys_are_dropped() -> None:
    order = ordered({0: (0, 0, 7)})

    for number in range(1, 1_000):
        order.put(1, RowTrial(0, (1, number, 7)), name_hash(1))
        order.remove(1)

    assert order._keys == [(0, 0, 7)] == list(order._buckets)
