import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.times import (
    MAX_TIME_NS,
    PLAIN_TIME,
    format_duration,
    format_exact_time,
    format_time,
    parse_duration,
    parse_time,
    time_of,
)

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-01T00:00:00Z", 1_767_225_600 * SECOND),
        ("1970-01-01T00:00:00.5Z", SECOND // 2),
        ("1970-01-01T00:00:00.123456789123Z", 123_456_789),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T16:30:00-07:30", 0),
        ("2262-04-11T23:47:16.854775807Z", MAX_TIME_NS),
    ],
)
def test_times_are_rfc_3339_with_fractions_and_offsets(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-01",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00",
        "2026-02-30T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00+24:00",
        "0000-01-01T00:00:00Z",
        "٢٠٢٦-01-01T00:00:00Z",
        "2026-01-01T00:00:00." + "1" * 1_000 + "Z",
    ],
)
def test_other_texts_are_not_times(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_time(text)


@pytest.mark.parametrize("value", [None, "", "soon", 3, {}, [], {"seconds": 3}])
def test_a_field_of_any_type_may_be_asked_for_its_time(value: object) -> None:
    assert time_of(value) is None
    assert time_of("1970-01-01T00:00:03Z") == 3 * SECOND


def test_times_are_written_in_whole_seconds() -> None:
    assert format_time(1_767_225_600 * SECOND + 999_999_999) == "2026-01-01T00:00:00Z"


def test_an_exact_time_has_a_fraction_where_it_needs_one() -> None:
    assert format_exact_time(90 * SECOND) == "1970-01-01T00:01:30Z"
    assert format_exact_time(SECOND - 1) == "1970-01-01T00:00:00.999999999Z"


@pytest.mark.parametrize(
    "text",
    [
        "2262-04-11T23:47:16.854775808Z",
        "2300-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
    ],
)
def test_a_time_after_2262_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is out of range; times are up to 2262"):
        parse_time(text)


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01", "0001-01-01T00:00:00Z"])
def test_a_time_before_1970_counts_as_1970(text: str) -> None:
    assert parse_time(text) == 0


@pytest.mark.parametrize(("ns", "text"), [(-1, "1970-01-01T00:00:00Z"), (10**30, "2262-04-11T23:47:16")])
def test_times_out_of_range_are_clamped(ns: int, text: str) -> None:
    assert format_time(ns).startswith(text)
    assert format_exact_time(ns).startswith(text)


@given(st.from_regex(PLAIN_TIME))
def test_a_plain_time_is_a_time(text: str) -> None:
    assert 0 <= parse_time(text) <= MAX_TIME_NS


@given(st.integers(0, MAX_TIME_NS))
def test_an_exact_time_reads_as_itself(ns: int) -> None:
    assert parse_time(format_exact_time(ns)) == ns


@given(st.integers(0, MAX_TIME_NS // SECOND))
def test_a_written_time_reads_as_itself(seconds: int) -> None:
    assert parse_time(format_time(seconds * SECOND)) == seconds * SECOND


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("90s", 90 * SECOND),
        ("1h2m3.5s", 3_723_500_000_000),
        ("300ms", 300_000_000),
        ("1.5us", 1_500),
        ("2µs", 2_000),
        ("7ns", 7),
        (".5s", SECOND // 2),
        ("-5s", -5 * SECOND),
        ("+5s", 5 * SECOND),
        ("0", 0),
        ("90", 90 * SECOND),
        ("1.5", 3 * SECOND // 2),
        (90, 90 * SECOND),
        (0.25, SECOND // 4),
    ],
)
def test_durations_are_gos_and_a_bare_number_counts_seconds(text: str | float, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize("text", ["", "s", ".", "-", "1d", "1h-2s", " 1s", "1S", "1e3", "٣s", "nan", True])
def test_other_texts_are_not_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["2562048h", "9" * 40, 2**63 // SECOND + 1])
def test_durations_beyond_64_bits_are_refused(text: str | int) -> None:
    with pytest.raises(ValueError, match="is too long"):
        parse_duration(text)


def test_a_duration_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="is too long"):
        parse_duration(10**5_000)
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration("9" * 5_000)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0s"),
        (90 * SECOND, "1m30s"),
        (3_600 * SECOND, "1h"),
        (3_723_500_000_000, "1h2m3.5s"),
        (300_000_000, "300ms"),
        (1_500, "1.5us"),
        (7, "7ns"),
        (-90 * SECOND, "-1m30s"),
    ],
)
def test_durations_are_written_as_people_write_them(ns: int, text: str) -> None:
    assert format_duration(ns) == text


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_a_written_duration_reads_as_itself(ns: int) -> None:
    assert parse_duration(format_duration(ns)) == ns
