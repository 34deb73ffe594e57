"""The times at which CronJobs run; the cases are those of robfig/cron and Kubernetes."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.times import Schedule, format_time, parse_schedule, parse_time

MINUTE = 60 * 10**9


def next_time(schedule: str, after: str, zone: str = "") -> str | None:
    found = parse_schedule(schedule, zone).next_ns(parse_time(after))
    return None if found is None else format_time(found)


@pytest.mark.parametrize(
    ("schedule", "after", "then"),
    [
        ("0/15 * * * *", "2012-07-09T14:45:00Z", "2012-07-09T15:00:00Z"),
        ("0/15 * * * *", "2012-07-09T14:59:59Z", "2012-07-09T15:00:00Z"),
        ("20-35/15 * * * *", "2012-07-09T15:45:00Z", "2012-07-09T16:20:00Z"),
        ("20-35/15 * * * *", "2012-07-09T23:46:00Z", "2012-07-10T00:20:00Z"),
        ("0 0 9 Feb Mon", "2012-02-01T00:00:00Z", "2012-02-06T00:00:00Z"),
        ("0 0 9 4-10 *", "2012-07-09T23:35:51Z", "2012-08-09T00:00:00Z"),
        ("0 0 29 2 ?", "2012-07-09T23:35:00Z", "2016-02-29T00:00:00Z"),
        ("0 0 31 2 *", "2012-07-09T23:35:00Z", None),
        ("30 6-16/4 * * 1-5", "2026-01-02T15:00:00Z", "2026-01-05T06:30:00Z"),
        ("59 23 31 12 *", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"),
        ("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        ("@daily", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ("@midnight", "2026-01-01T07:00:00Z", "2026-01-02T00:00:00Z"),
        ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("@monthly", "2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("@annually", "2026-06-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("@every 1h30m", "2026-01-01T00:00:07Z", "2026-01-01T01:30:07Z"),
        ("@every 10ms", "2026-01-01T00:00:07Z", "2026-01-01T00:00:08Z"),
    ],
)
def test_the_next_time_is_the_first_that_the_fields_name(schedule: str, after: str, then: str | None) -> None:
    assert next_time(schedule, after) == then


@pytest.mark.parametrize(
    ("schedule", "then"),
    [
        ("0 0 13 * 5", "2026-02-06T00:00:00Z"),
        ("0 0 */20 * 1", "2026-02-02T00:00:00Z"),
        ("0 0 13 * *", "2026-02-13T00:00:00Z"),
        ("0 0 * * 5", "2026-02-06T00:00:00Z"),
        ("0 0 */1 * 5", "2026-02-06T00:00:00Z"),
    ],
)
def test_either_restricted_day_field_matches_a_schedule(schedule: str, then: str) -> None:
    assert next_time(schedule, "2026-02-01T00:00:00Z") == then


@pytest.mark.parametrize(
    ("after", "then"),
    [
        # In New York clocks went from 2 to 3 on the 11th of March 2012, and from 2 back to 1 on the 4th of November.
        ("2012-03-11T05:00:00Z", "2012-03-12T06:30:00Z"),
        ("2012-03-10T05:00:00Z", "2012-03-10T07:30:00Z"),
    ],
)
def test_times_that_clocks_skip_are_left_out(after: str, then: str) -> None:
    assert next_time("30 2 * * *", after, "America/New_York") == then


def test_times_that_clocks_show_twice_come_twice() -> None:
    first = next_time("30 1 * * *", "2012-11-04T04:00:00Z", "America/New_York")
    assert first == "2012-11-04T05:30:00Z"

    assert next_time("30 1 * * *", first, "America/New_York") == "2012-11-04T06:30:00Z"
    assert next_time("30 1 * * *", "2012-11-04T06:30:00Z", "America/New_York") == "2012-11-05T06:30:00Z"


def test_a_zone_may_stand_in_the_schedule() -> None:
    assert next_time("TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T12:00:00Z") == "2026-01-02T00:00:00Z"
    assert next_time("CRON_TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T12:00:00Z") == "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("* * * *", "has 4 fields; write five"),
        ("60 * * * *", '"60" is not a valid minute; write 0 to 59'),
        ("* 24 * * *", "is not a valid hour"),
        ("* * 0 * *", "is not a valid day of month"),
        ("* * * 13 *", "is not a valid month"),
        ("* * * * 7", "is not a valid day of week; write 0 to 6"),
        ("5-3 * * * *", "is not a valid minute"),
        ("*/0 * * * *", "is not a step of a minute"),
        ("x * * * *", '"x" is not a valid minute'),
        ("* * * * 1-", '"" is not a valid day of week'),
        ("@reboot", "is not a schedule"),
        ("@every soon", "soon"),
        ("TZ=Mars/Base 0 0 * * *", '"Mars/Base" is not a time zone'),
        ("TZ=../etc/passwd 0 0 * * *", "is not a time zone"),
        ("", "has 0 fields"),
    ],
)
def test_an_invalid_schedule_is_reported(schedule: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_schedule(schedule)


FIELDS = st.tuples(
    st.sampled_from(["*", "*/7", "5", "0,30", "10-20/5"]),
    st.sampled_from(["*", "3", "1-4", "*/6"]),
    st.sampled_from(["*", "1", "28-31", "*/9"]),
    st.sampled_from(["*", "3", "10-11"]),
    st.sampled_from(["*", "0", "1-5"]),
)


def is_named(schedule: Schedule, time: int) -> bool:
    there = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=time // 10**9)).astimezone(schedule.zone)
    is_day, is_weekday = there.day in schedule.days, there.isoweekday() % 7 in schedule.weekdays
    return (
        there.minute in schedule.minutes
        and there.hour in schedule.hours
        and there.month in schedule.months
        and ((is_day or is_weekday) if schedule.either_day else (is_day and is_weekday))
    )


@given(
    FIELDS, st.integers(0, 60 * 24 * 800), st.sampled_from(["", "Europe/Paris", "America/Sao_Paulo", "Asia/Kolkata"])
)
def test_the_next_time_is_the_first_minute_that_the_fields_name(fields: Sequence[str], minutes: int, zone: str) -> None:
    schedule = parse_schedule(" ".join(fields), zone)
    assert isinstance(schedule, Schedule)
    start = parse_time("2017-01-01T00:00:00Z") + minutes * MINUTE

    found = schedule.next_ns(start)

    assert found is None or is_named(schedule, found)
    end = start + 2_000 * MINUTE
    assert not any(is_named(schedule, time) for time in range(start + MINUTE, min(end, found or end), MINUTE))
