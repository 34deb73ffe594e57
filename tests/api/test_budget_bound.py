"""The bounds on how strict a disruption budget may be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.budget_limits import bounded_desired, raised, strictness_problem
from podium.api.disruption_policy import BudgetBound, parse_rate
from podium.api.policy import PodDisruptionBudgetSpec

ONE = BudgetBound(min_disruptions=1)


@pytest.mark.parametrize(
    ("desired", "expected", "least", "bounded"),
    [
        (3, 3, 1, 2),
        (2, 3, 1, 2),
        (0, 3, 1, 0),
        (1, 1, 1, 0),
        (10, 10, "25%", 7),
        (3, 3, 9, 0),
        (5, 3, 1, 2),
        (3, 3, None, 3),
    ],
)
def test_the_bound_states_how_many_disruptions_must_be_allowed(
    desired: int, expected: int, least: int | str | None, bounded: int
) -> None:
    assert bounded_desired(desired, expected, BudgetBound(min_disruptions=least)) == bounded
    assert bounded_desired(desired, expected, None) == desired


@pytest.mark.parametrize(
    ("spec", "expected", "is_too_strict"),
    [
        # Of a known number of pods.
        ({"max_unavailable": 0}, 3, True),
        ({"max_unavailable": 1}, 3, False),
        ({"max_unavailable": "1%"}, 3, False),
        ({"min_available": 3}, 3, True),
        ({"min_available": 2}, 3, False),
        ({"min_available": "90%"}, 3, True),
        ({}, 3, False),
        # Without a known number of pods: budgets that are too strict for any number.
        ({"max_unavailable": 0}, None, True),
        ({"max_unavailable": "0%"}, None, True),
        ({"min_available": "100%"}, None, True),
        ({"min_available": 10_000}, None, False),
        ({"min_available": "90%"}, None, False),
    ],
)
def test_a_budget_that_allows_fewer_disruptions_than_the_bound_is_too_strict(
    spec: dict[str, Any], expected: int | None, is_too_strict: bool
) -> None:
    problem = strictness_problem(PodDisruptionBudgetSpec(**spec), None, ONE, expected)

    assert (problem is not None) is is_too_strict


@given(
    st.one_of(st.integers(0, 12), st.integers(0, 100).map("{}%".format)),
    st.sampled_from(["min_available", "max_unavailable"]),
    st.one_of(st.integers(0, 5), st.integers(0, 100).map("{}%".format)),
    st.integers(0, 12),
)
def test_the_budget_bound_accepts_exactly_the_compliant_budgets(
    share: int | str, field: str, least: int | str, expected: int
) -> None:
    given: dict[str, Any] = {field: share}
    spec, bound = PodDisruptionBudgetSpec(**given), BudgetBound(min_disruptions=least)

    def pods(amount: int | str) -> int:
        return amount if isinstance(amount, int) else -(-int(amount[:-1]) * expected // 100)

    desired = pods(share) if field == "min_available" else max(0, expected - pods(share))
    is_bounded = bounded_desired(desired, expected, bound) < desired
    assert (strictness_problem(spec, None, bound, expected) is not None) is is_bounded
    if expected:
        assert expected - bounded_desired(desired, expected, bound) >= min(pods(least), expected) or not is_bounded


@pytest.mark.parametrize(
    ("own", "holds"),
    [("1/1h", "1/1h"), ("2/2h", "2/2h"), ("1/30m", "1/30m"), ("1/2h", "1/1h"), ("9/10h", "1/1h"), ("1/24h", "1/1h")],
)
def test_disruptions_must_come_back_at_least_as_quickly(own: str, holds: str) -> None:
    """However many there may be in a row."""
    least = BudgetBound(min_rate="1/1h")
    problem = strictness_problem(PodDisruptionBudgetSpec(), parse_rate(own), least, 3)

    assert raised(parse_rate(own), parse_rate("1/1h")) == parse_rate(holds)
    assert (problem is None) is (own == holds)
