"""Kubernetes' timestamps and durations, as integer nanoseconds.

Times are RFC 3339 (meta/v1 Time), durations are Go's (time.ParseDuration).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from podium.api.errors import shown

MAX_TIME_NS = 2**63 - 1
"""The maximum time, in nanoseconds since 1970: 2262-04-11T23:47:16Z.

Later values are not valid times. Intervals that end later never end. Earlier times than 1970 count as 1970."""

EARLIEST_NS = -62_135_596_800 * 10**9
"""The first time that can be written: that of the year 1."""

PLAIN_TIME = (
    r"^(?:19[89][0-9]|2[01][0-9][0-9]|22[0-5][0-9])-"
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,30})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])\Z"
)
"""A pattern of most times: `parse_time` accepts every text that matches; few other times occur."""

_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CACHE = 65_536
_HOURS = 4_096
_DURATIONS = 16_384
_HOUR_SECONDS = 3_600
_MAX_LENGTH = 64
_MAX_DURATION = MAX_TIME_NS
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,30}))?"
    r"(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
# Nearly all times: whole seconds of UTC.
_PLAIN = re.compile(r"(\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3])):([0-5]\d):([0-5]\d)Z", re.ASCII)
# The formatted minutes and seconds, and their values: a lookup is faster than formatting and parsing.
_WRITTEN = tuple(f"{number:02}" for number in range(60))
_READ = {text: number for number, text in enumerate(_WRITTEN)}
_DURATION_PART = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_BARE_NUMBER = re.compile(r"(\d*)(?:\.(\d*))?", re.ASCII)
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3_600 * _SECOND,
}


@lru_cache(maxsize=_CACHE)
def parse_time(text: str) -> int:
    """Return the nanoseconds since 1970 of an RFC 3339 time up to MAX_TIME_NS, 0 for an earlier one.

    Finer digits are truncated. Raises ValueError.
    """
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        hour, minute, second = plain.groups()
        hours = _hours(hour)
        if hours is not None:
            return (hours * _HOUR_SECONDS + _READ[minute] * 60 + _READ[second]) * _SECOND
    return max(exact_time(text), 0)


def exact_time(text: str) -> int:
    """Return the nanoseconds since 1970 of a time up to MAX_TIME_NS; negative for earlier ones. Raises ValueError."""
    ns = any_time(text)
    if ns > MAX_TIME_NS:
        raise ValueError(f"{shown(text)} is out of range; times are up to 2262")
    return ns


def any_time(text: str) -> int:
    """Return the nanoseconds since 1970 of a time of the years 1 to 9999. Raises ValueError."""
    match = _TIME.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(f"{shown(text)} is no time; write it as in 2026-01-31T09:30:00Z")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"{shown(text)} is no time: {error}") from None
    fraction, sign, offset_hours, offset_minutes = match.groups()[6:]
    seconds: int = (moment - _EPOCH) // timedelta(seconds=1)
    if sign:
        offset = int(offset_hours) * 3_600 + int(offset_minutes) * 60
        seconds += offset if sign == "-" else -offset
    return seconds * _SECOND + _nanoseconds(fraction or "", _SECOND)


@lru_cache(maxsize=_CACHE)
def time_of(text: object) -> int | None:
    """Return the time in a field that was not validated; None if it has none."""
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None


def format_time(ns: int) -> str:
    """Return the time in the format of meta/v1 Time: UTC, truncated to whole seconds.

    A value out of range is written as the minimum or maximum time.
    """
    hours, second = divmod(min(max(ns, 0), MAX_TIME_NS) // _SECOND, _HOUR_SECONDS)
    return f"{_hour(hours)}:{_WRITTEN[second // 60]}:{_WRITTEN[second % 60]}Z"


@lru_cache(maxsize=_HOURS)
def _hour(hours: int) -> str:
    """Return date and hour, this many hours after 1970: "2026-01-31T09"."""
    return (_EPOCH + timedelta(hours=hours)).isoformat()[:13]


@lru_cache(maxsize=_HOURS)
def _hours(hour: str) -> int | None:
    """Return the number of hours since 1970; None if it is invalid or possibly out of range."""
    try:
        hours = (datetime.fromisoformat(f"{hour}:00:00+00:00") - _EPOCH) // timedelta(hours=1)
    except ValueError:
        return None
    return hours if 0 <= hours < MAX_TIME_NS // _SECOND // _HOUR_SECONDS else None


@lru_cache(maxsize=_CACHE)
def format_exact_time(ns: int) -> str:
    """Return the time as RFC 3339 to the nanosecond: "2026-01-31T09:30:00.000000001Z".

    Whole seconds have no fraction.
    """
    whole, fraction = divmod(min(max(ns, 0), MAX_TIME_NS), _SECOND)
    text = format_time(whole * _SECOND)
    return f"{text[:-1]}.{fraction:09}Z" if fraction else text


def format_micro_time(ns: int) -> str:
    """Return the time with microseconds, which are always present (meta/v1 MicroTime, RFC3339Micro)."""
    return f"{format_time(ns)[:-1]}.{ns // 1_000 % 1_000_000:06}Z"


def parse_duration(text: str | int | float) -> int:
    """Return the nanoseconds of a duration such as "1h2m3.5s" or "300ms"; a bare number is in seconds.

    Raises ValueError for anything else, and for values beyond int64 (292 years).
    """
    if isinstance(text, int) and not isinstance(text, bool):
        total = text * _SECOND
    else:
        written = str(text)
        read = _duration(written) if len(written) <= _MAX_LENGTH else None
        if read is None:
            raise ValueError(
                f'{shown(text)} is no duration; write it as in "90s", "1h30m" or "300ms" (units h m s ms us ns)'
            )
        total = read
    if not -_MAX_DURATION <= total <= _MAX_DURATION:
        raise ValueError(f"{shown(text)} is too long; a duration is at most 292 years")
    return total


@lru_cache(maxsize=_DURATIONS)
def _duration(text: str) -> int | None:
    """Return the nanoseconds of a duration, or None if it is invalid."""
    if text[:1] in ("-", "+"):
        found = None if text[1:2] in ("-", "+") else _duration(text[1:])
        return -found if found is not None and text[0] == "-" else found
    seconds = text.removesuffix("s")
    if seconds.isdecimal() and seconds.isascii():
        return int(seconds) * _SECOND
    bare = _BARE_NUMBER.fullmatch(text)
    if bare is not None:
        return _amount(bare[1], bare[2] or "", _SECOND)
    total, position = 0, 0
    while position < len(text):
        part = _DURATION_PART.match(text, position)
        amount = None if part is None else _amount(part[1], part[2] or "", _UNITS[part[3]])
        if part is None or amount is None:
            return None
        total += amount
        position = part.end()
    return total


def _amount(whole: str, fraction: str, unit_ns: int) -> int | None:
    if not whole and not fraction:
        return None
    return int(whole or "0") * unit_ns + _nanoseconds(fraction, unit_ns)


def _nanoseconds(fraction: str, unit_ns: int) -> int:
    """Return the nanoseconds of the digits after a decimal point, truncated."""
    scale: int = 10 ** len(fraction)
    return int(fraction or "0") * unit_ns // scale


def seconds(ns: int) -> int | float:
    """Return seconds, as an integer if possible."""
    return ns // _SECOND if ns % _SECOND == 0 else ns / _SECOND


def format_duration(ns: int) -> str:
    """Return the exact duration in a form that `parse_duration` accepts: "1m30s", "1.5s", "300ms"."""
    if ns == 0:
        return "0s"
    sign, rest = ("-", -ns) if ns < 0 else ("", ns)
    if rest < _SECOND:
        unit = next(unit for unit in ("ms", "us", "ns") if rest >= _UNITS[unit])
        return sign + _decimal(rest, _UNITS[unit]) + unit
    minutes, rest = divmod(rest, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    parts = (f"{hours}h" if hours else "", f"{minutes}m" if minutes else "")
    return sign + "".join(parts) + (_decimal(rest, _SECOND) + "s" if rest else "")


def _decimal(amount: int, unit: int) -> str:
    """Return the amount in units with as many decimals as needed; the unit is a power of ten."""
    whole, rest = divmod(amount, unit)
    decimals = f"{rest:0{len(str(unit)) - 1}}".rstrip("0") if rest else ""
    return f"{whole}.{decimals}" if decimals else str(whole)
