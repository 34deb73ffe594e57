"""Disruption rates: their text form, and how a bucket empties and refills."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.disruption_policy import Rate, parse_rate
from tests.plain_bucket import PlainBucket

SECOND = 10**9
HOUR = 3_600 * SECOND

rates = st.builds(Rate, st.integers(1, 7), st.integers(1, 100))


@pytest.mark.parametrize(
    ("text", "count", "period_ns"),
    [("1/1h", 1, HOUR), ("5/10m", 5, 600 * SECOND), ("3/90", 3, 90 * SECOND), ("100/1h30m", 100, HOUR * 3 // 2)],
)
def test_a_rate_is_how_many_in_how_long(text: str, count: int, period_ns: int) -> None:
    assert parse_rate(text) == Rate(count, period_ns)


@pytest.mark.parametrize(
    "text", ["", "1", "1/", "/1h", "0/1h", "-1/1h", "1.5/1h", "1/1h/1h", "1 / 1h", "1/\n1h", "1/1y"]
)
def test_an_invalid_rate_is_rejected_with_the_valid_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"as in|such as"):
        parse_rate(text)


@pytest.mark.parametrize("text", ["1/0s", "1/-1h"])
def test_a_period_is_longer_than_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="not longer than 0s"):
        parse_rate(text)


@given(rate=st.builds(Rate, st.integers(1, 999_999), st.integers(1, 10**15)))
def test_a_rate_is_written_as_it_is_read(rate: Rate) -> None:
    assert parse_rate(str(rate)) == rate


def test_a_bucket_holds_as_many_tokens_as_the_rate_has_and_gets_them_back_one_by_one() -> None:
    rate = Rate(3, 30)
    full = 0
    for _ in range(3):
        full = rate.taken(full, now=100)

    assert [rate.tokens(full, now) for now in (100, 109, 110, 119, 120, 130, 500)] == [0, 0, 1, 1, 2, 3, 3]
    assert rate.next_ns(full, now=100) == 110


@given(rate=rates, waits=st.lists(st.integers(0, 60), max_size=40))
def test_a_bucket_counts_as_one_would_by_hand(rate: Rate, waits: list[int]) -> None:
    full, now = 0, 1_000
    plain = PlainBucket(rate.count, rate.interval_ns, now)
    for wait in waits:
        now += wait
        tokens = plain.tokens(now)
        assert rate.tokens(full, now) == tokens
        assert rate.next_ns(full, now) == plain.next_ns(now)
        if tokens:
            plain.take(now)
            full = rate.taken(full, now)


@given(rate=rates, waits=st.lists(st.integers(0, 60), min_size=1, max_size=40), width=st.integers(0, 200))
def test_no_stretch_of_time_sees_more_than_the_bucket_and_what_came_back_meanwhile(
    rate: Rate, waits: list[int], width: int
) -> None:
    full, now, taken = 0, 1_000, []
    for wait in waits:
        now += wait
        while rate.tokens(full, now) > 0:
            full = rate.taken(full, now)
            taken.append(now)

    most = max(sum(start <= time <= start + width for time in taken) for start in taken)
    assert most <= rate.count + width // rate.interval_ns


@given(before=rates, after=rates, used=st.integers(1, 7), waited=st.integers(0, 200))
def test_usage_under_one_rate_still_counts_under_another(before: Rate, after: Rate, used: int, waited: int) -> None:
    now, full = 1_000, 0
    for _ in range(min(used, before.count)):
        full = before.taken(full, now)

    carried = after.carried_over(full, before)

    # Both buckets were empty at the same time, so that what came back since is what counts.
    empty = full - before.count * before.interval_ns
    expected = min(after.count, (now + waited - empty) // after.interval_ns)
    assert after.tokens(carried, now + waited) == expected
