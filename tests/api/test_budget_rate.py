"""The disruption rate in the status of a budget."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.budget_limits import rate_of, rate_recheck_ns, rate_status, rate_status_after
from podium.api.disruption_policy import MAX_DISRUPTIONS
from podium.api.errors import InputError
from podium.api.input.codec import decode
from podium.api.meta import Raw
from podium.api.policy import PodDisruptionBudget
from podium.api.reading import read

SECOND = 10**9
BUDGET: Raw = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}}


def budget(rate: str | None, status: Raw | None = None) -> PodDisruptionBudget:
    annotations = {} if rate is None else {MAX_DISRUPTIONS: rate}
    given: dict[str, Any] = {} if status is None else {"disruptionRate": status}
    return read({"metadata": {"annotations": annotations}, "status": given}, PodDisruptionBudget)


def test_a_budget_without_the_annotation_has_no_rate() -> None:
    plain = budget(None, {"max": "1/1h", "available": 1})

    assert rate_of(plain) is None
    assert rate_status(plain, 0) is None
    assert rate_status_after(plain, 0) is None
    assert rate_recheck_ns(plain, 0) is None


def test_before_the_first_disruption_all_is_available() -> None:
    assert rate_status(budget("5/1h"), 77) == {"max": "5/1h", "available": 5}
    assert rate_recheck_ns(budget("5/1h"), 77) is None


def test_a_disruption_takes_one_and_the_status_says_when_it_is_back() -> None:
    after = rate_status_after(budget("2/1m"), 100 * SECOND)

    assert after == {"max": "2/1m", "available": 1, "fullTime": "1970-01-01T00:02:10Z"}
    assert rate_recheck_ns(budget("2/1m", after), 100 * SECOND) == 130 * SECOND
    assert rate_status(budget("2/1m", after), 130 * SECOND) == {**after, "available": 2}
    assert rate_recheck_ns(budget("2/1m", after), 130 * SECOND) is None


def test_a_disruption_without_a_token_takes_nothing() -> None:
    empty = rate_status_after(budget("1/1h"), 0)

    assert rate_status_after(budget("1/1h", empty), SECOND) == empty


def test_the_time_is_exact_to_the_nanosecond() -> None:
    after = rate_status_after(budget("3/1s"), 1)

    assert after is not None
    assert after["fullTime"] == "1970-01-01T00:00:00.333333335Z"
    assert rate_status_after(budget("3/1s", after), 1) == {
        "max": "3/1s",
        "available": 1,
        "fullTime": "1970-01-01T00:00:00.666666669Z",
    }


def test_a_changed_annotation_keeps_what_was_used() -> None:
    used = rate_status_after(budget("1/24h"), 0)

    assert rate_status(budget("1/1h", used), 0) == {"max": "1/1h", "available": 0, "fullTime": "1970-01-01T01:00:00Z"}


def test_nothing_is_available_of_a_bucket_that_was_used_later_than_now() -> None:
    later = {"max": "1/1h", "fullTime": "1970-01-01T05:00:00Z"}

    assert rate_status(budget("1/1h", later), 0) == {**later, "available": 0}


def test_the_status_is_not_written_more_often_than_each_second() -> None:
    after = rate_status_after(budget("1000/1s"), 0)

    assert rate_recheck_ns(budget("1000/1s", after), 0) == SECOND


@given(waits=st.lists(st.integers(0, 40 * SECOND), max_size=20), count=st.integers(1, 4))
def test_rewriting_the_status_changes_only_the_available_tokens(waits: list[int], count: int) -> None:
    text, now, status = f"{count}/1m", 0, None
    for wait in waits:
        now += wait
        status = rate_status_after(budget(text, status), now)
        later = rate_status(budget(text, status), now + wait)
        assert status is not None
        assert later is not None
        assert {**later, "available": 0} == {**status, "available": 0}
        assert rate_status(budget(text, later), now) == status
        recheck = rate_recheck_ns(budget(text, status), now)
        if recheck is not None:
            assert recheck > now
            again = rate_status(budget(text, status), recheck)
            assert again is not None
            assert again["available"] > status["available"]


@pytest.mark.parametrize(
    ("status", "path"),
    [({"max": "often"}, ".status.disruptionRate.max"), ({"max": "1/1h", "fullTime": "noon"}, ".fullTime")],
)
def test_a_status_that_cannot_be_read_is_refused(status: Raw, path: str) -> None:
    with pytest.raises(InputError) as caught:
        decode({**BUDGET, "status": {"disruptionRate": status}})
    assert caught.value.path.endswith(path)
