"""Combining the answers of many filters for many nodes."""

from __future__ import annotations

import numpy as np
import pytest

from podium.cluster.arrays import Int64s
from podium.framework.verdicts import SUCCESS, Outcome, Status, Verdicts, unresolvable, unschedulable

NO, NEVER = unschedulable("no"), unresolvable("never")


def codes(*values: int) -> Int64s:
    return np.array(values, dtype=np.int64)


def verdicts(*values: int) -> Verdicts:
    return Verdicts.choose(codes(*values), (SUCCESS, NO, NEVER))


def all_of(outcome: Outcome) -> list[Status]:
    return [outcome.status(position) for position in range(len(outcome.refused))]


def test_the_first_plugin_of_the_profile_gives_the_reason_in_any_answer_order() -> None:
    answers = [(1, "First", verdicts(0, 1, 0)), (2, "Second", verdicts(2, 2, 0))]
    for order in (answers, answers[::-1]):
        outcome = Outcome(3)
        for answer in order:
            outcome.add(*answer)

        assert all_of(outcome) == [NEVER.by("Second"), NO.by("First"), SUCCESS]
        assert outcome.feasible.tolist() == [2]


def test_a_plugin_is_asked_where_no_earlier_one_refused() -> None:
    outcome = Outcome(4)
    outcome.add(2, "Second", verdicts(0, 1, 0, 1))
    outcome.add(4, "Fourth", verdicts(0, 0, 1, 0))

    assert [outcome.undecided(index).tolist() for index in (1, 3, 5)] == [[0, 1, 2, 3], [0, 2], [0]]


def test_another_outcome_stands_only_where_it_refuses() -> None:
    outcome, other = Outcome(3), Outcome(2)
    outcome.add(1, "First", verdicts(1, 1, 0))
    other.add(2, "Second", verdicts(2, 0))

    outcome.override(codes(0, 2), other)

    assert all_of(outcome) == [NEVER.by("Second"), NO.by("First"), SUCCESS]


def test_rows_without_a_node_have_no_status_and_are_not_counted() -> None:
    outcome = Outcome(3)
    outcome.refuse_all(NEVER.by("Early"), np.array([True, False, True]))

    assert outcome.status(0) == NEVER.by("Early")
    assert outcome.feasible.tolist() == []
    assert outcome.tally() == [(1, 2)]
    with pytest.raises(KeyError):
        outcome.status(1)


def test_the_tally_counts_each_refusal_in_the_order_of_plugins() -> None:
    outcome = Outcome(5)
    outcome.add(2, "Second", verdicts(1, 0, 1, 2, 0))
    outcome.add(1, "First", verdicts(0, 1, 0, 0, 0))

    assert [(outcome.status_of(code), number) for code, number in outcome.tally()] == [
        (NO.by("First"), 1),
        (NO.by("Second"), 2),
        (NEVER.by("Second"), 1),
    ]


def test_verdicts_can_be_made_from_a_mask() -> None:
    found = Verdicts.where(np.array([True, False]), NO)

    assert (found.codes.tolist(), found.status(1)) == ([1, 0], NO)
    assert Verdicts.none(2).codes.tolist() == [0, 0]
