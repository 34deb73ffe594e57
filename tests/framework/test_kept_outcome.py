"""Outcomes that are cached with their counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster.arrays import ChangeLog, Int64s
from podium.framework.cache.filters import CachedOutcome
from podium.framework.verdicts import Outcome, Status, unschedulable
from tests.fuzzing import usual

ROWS = 12
ENTRIES = st.sampled_from([Outcome.ABSENT, 0, 0, (1 << 32) + 1, (1 << 32) + 2, (2 << 32) + 1])
CHANGES = st.lists(st.tuples(st.integers(0, ROWS - 1), ENTRIES), max_size=4)


class Kept:
    """A kept outcome, and what it should be."""

    def __init__(self, entries: list[int]) -> None:
        self.log = ChangeLog()
        self.entries = np.array(entries, dtype=np.int64)
        self.kept = CachedOutcome()
        self.refresh()

    def refresh(self) -> Outcome:
        def compute(rows: Int64s) -> Int64s:
            entries: Int64s = self.entries[rows]
            return entries

        self.kept.refresh(self.log, np.arange(ROWS), compute)
        return self.kept.outcome()

    def change(self, changes: list[tuple[int, int]]) -> None:
        for row, entry in changes:
            self.entries[row] = entry
            self.log.touch(row)


def facts(outcome: Outcome) -> tuple[object, ...]:
    return (outcome.refused.tolist(), outcome.tally(), outcome.examined_nodes, outcome.feasible.tolist())


def plain(entries: Int64s) -> tuple[object, ...]:
    return facts(Outcome.of(entries.copy(), {}))


@settings(max_examples=usual(60))
@given(st.lists(ENTRIES, min_size=ROWS, max_size=ROWS), st.lists(CHANGES, max_size=5))
def test_cached_outcomes_equal_a_recount(entries: list[int], steps: list[list[tuple[int, int]]]) -> None:
    there = Kept(entries)
    for changes in steps:
        there.change(changes)

        assert facts(there.refresh()) == plain(there.entries)
        assert facts(there.kept.outcome_but(3, 0)) == plain(np.where(np.arange(ROWS) == 3, 0, there.entries))
        assert facts(there.refresh()) == plain(there.entries)


def test_an_outcome_that_was_given_out_stays_as_it_was() -> None:
    there = Kept([0, 7, 7] + [Outcome.ABSENT] * (ROWS - 3))
    before = there.refresh()
    found = facts(before)

    there.change([(0, 7), (3, 0)])
    after = there.refresh()

    assert facts(before) == found == ([0, 7, 7] + [-1] * 9, [(7, 2)], 3, [0])
    assert facts(after) == ([7, 7, 7, 0] + [-1] * 8, [(7, 3)], 4, [3])


def refusing(words: str, asked: list[int]) -> Callable[[int], Status]:
    """Explains a code, and notes that it was asked."""

    def explain(code: int) -> Status:
        asked.append(code)
        return unschedulable(f"{words} {code}")

    return explain


def reasons(outcome: Outcome) -> list[tuple[str, int]]:
    return list(outcome.summary()[1].items())


def test_the_meaning_of_rejections_is_cached_until_an_entry_changes() -> None:
    there, asked = Kept([(1 << 32) + 7] * ROWS), list[int]()
    there.kept.decoders[1] = ("Plugin", refusing("lacks", asked))
    assert reasons(there.refresh()) == [("lacks 7", ROWS)]

    there.change([(3, (1 << 32) + 7)])
    assert reasons(there.refresh()) == [("lacks 7", ROWS)]
    assert asked == [7]

    there.change([(3, (1 << 32) + 8)])
    assert reasons(there.refresh()) == [("lacks 7", ROWS - 1), ("lacks 8", 1)]


def test_a_refusal_that_is_explained_otherwise_means_something_else() -> None:
    there = Kept([(1 << 32) + 7] * ROWS)
    for words in ("lacks", "has too much"):
        there.kept.decoders[1] = ("Plugin", refusing(words, []))

        assert reasons(there.refresh()) == [(f"{words} 7", ROWS)]


def test_callers_cannot_change_a_cached_outcome() -> None:
    assert not Kept([0] * ROWS).refresh().refused.flags.writeable
