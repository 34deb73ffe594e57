"""Kubernetes' timestamps and durations, as integer nanoseconds, and the schedules of CronJobs.

Times are RFC 3339 (meta/v1 Time), durations are Go's (time.ParseDuration). A schedule is five cron fields, or a name
such as @hourly; its rules are those of github.com/robfig/cron/v3 (ParseStandard, SpecSchedule.Next), with which
Kubernetes parses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import chain, product
from zoneinfo import ZoneInfo

from msgspec import Struct

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

SECOND = 10**9
"""A second, in nanoseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CACHE = 65_536
_HOURS = 4_096
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
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3_600 * SECOND,
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
            return (hours * _HOUR_SECONDS + _READ[minute] * 60 + _READ[second]) * SECOND
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
        raise ValueError(f"{shown(text)} is not a time; write it as in 2026-01-31T09:30:00Z")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"{shown(text)} is not a time: {error}") from None
    fraction, sign, offset_hours, offset_minutes = match.groups()[6:]
    seconds: int = (moment - _EPOCH) // timedelta(seconds=1)
    if sign:
        offset = int(offset_hours) * 3_600 + int(offset_minutes) * 60
        seconds += offset if sign == "-" else -offset
    return seconds * SECOND + _nanoseconds(fraction or "", SECOND)


def time_of(value: object) -> int | None:
    """Return the time in a field that was not validated; None if it has none."""
    try:
        return parse_time(value) if isinstance(value, str) else None
    except ValueError:
        return None


def format_time(ns: int) -> str:
    """Return the time in the format of meta/v1 Time: UTC, truncated to whole seconds.

    A value out of range is written as the minimum or maximum time.
    """
    hours, second = divmod(min(max(ns, 0), MAX_TIME_NS) // SECOND, _HOUR_SECONDS)
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
    return hours if 0 <= hours < MAX_TIME_NS // SECOND // _HOUR_SECONDS else None


@lru_cache(maxsize=_CACHE)
def format_exact_time(ns: int) -> str:
    """Return the time as RFC 3339 to the nanosecond: "2026-01-31T09:30:00.000000001Z".

    Whole seconds have no fraction.
    """
    whole, fraction = divmod(min(max(ns, 0), MAX_TIME_NS), SECOND)
    text = format_time(whole * SECOND)
    return f"{text[:-1]}.{fraction:09}Z" if fraction else text


def format_micro_time(ns: int) -> str:
    """Return the time with microseconds, which are always present (meta/v1 MicroTime, RFC3339Micro)."""
    return f"{format_time(ns)[:-1]}.{ns // 1_000 % 1_000_000:06}Z"


def parse_duration(text: str | int | float) -> int:
    """Return the nanoseconds of a duration such as "1h2m3.5s" or "300ms"; a bare number is in seconds.

    Raises ValueError for anything else, and for values beyond int64 (292 years).
    """
    if isinstance(text, int) and not isinstance(text, bool):
        total = text * SECOND
    else:
        written = str(text)
        read = _duration(written) if len(written) <= _MAX_LENGTH else None
        if read is None:
            raise ValueError(
                f'{shown(text)} is not a duration such as "90s", "1h30m" or "300ms" (units h m s ms us ns)'
            )
        total = read
    if not -_MAX_DURATION <= total <= _MAX_DURATION:
        raise ValueError(f"{shown(text)} is too long; a duration is at most 292 years")
    return total


def parse_nonnegative_duration(text: str | int | float) -> int:
    """Return the nanoseconds of a duration of 0 or more. Raises ValueError for any other."""
    duration_ns = parse_duration(text)
    if duration_ns < 0:
        raise ValueError(f"{shown(text)} is negative; write 0s or more")
    return duration_ns


@lru_cache(maxsize=16_384)
def _duration(text: str) -> int | None:
    """Return the nanoseconds of a duration, or None if it is invalid."""
    if text[:1] in ("-", "+"):
        found = None if text[1:2] in ("-", "+") else _duration(text[1:])
        return -found if found is not None and text[0] == "-" else found
    seconds = text.removesuffix("s")
    if seconds.isdecimal() and seconds.isascii():
        return int(seconds) * SECOND
    bare = _BARE_NUMBER.fullmatch(text)
    if bare is not None:
        return _amount(bare[1], bare[2] or "", SECOND)
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
    return ns // SECOND if ns % SECOND == 0 else ns / SECOND


def format_duration(ns: int) -> str:
    """Return the exact duration in a form that `parse_duration` accepts: "1m30s", "1.5s", "300ms"."""
    if ns == 0:
        return "0s"
    sign, rest = ("-", -ns) if ns < 0 else ("", ns)
    if rest < SECOND:
        unit = next(unit for unit in ("ms", "us", "ns") if rest >= _UNITS[unit])
        return sign + _decimal(rest, _UNITS[unit]) + unit
    minutes, rest = divmod(rest, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    parts = (f"{hours}h" if hours else "", f"{minutes}m" if minutes else "")
    return sign + "".join(parts) + (_decimal(rest, SECOND) + "s" if rest else "")


# The length of a unit in seconds, up to how many of it a smaller unit is shown, and that unit.
_AGES = {"s": (1, 0, ""), "m": (60, 10, "s"), "h": (3_600, 8, "m"), "d": (86_400, 8, "h"), "y": (31_536_000, 8, "d")}


def human_duration(ns: int) -> str:
    """Return a duration in at most two units, as kubectl shows an age (duration.HumanDuration)."""
    # Go truncates towards zero.
    seconds = ns // SECOND if ns >= 0 else -(-ns // SECOND)
    if seconds < 0:
        return "0s" if seconds == -1 else "<invalid>"
    if seconds < 120:
        return f"{seconds}s"
    unit = "m" if seconds < 3 * 3_600 else "h" if seconds < 48 * 3_600 else "d" if seconds < 2 * _AGES["y"][0] else "y"
    length, most, smaller = _AGES[unit]
    count, rest = divmod(seconds, length)
    # A second unit is shown for few of the first.
    rest = rest // _AGES[smaller][0] if count < most else 0
    return f"{count}{unit}{rest}{smaller}" if rest else f"{count}{unit}"


def _decimal(amount: int, unit: int) -> str:
    """Return the amount in units with as many decimals as needed; the unit is a power of ten."""
    whole, rest = divmod(amount, unit)
    decimals = f"{rest:0{len(str(unit)) - 1}}".rstrip("0") if rest else ""
    return f"{whole}.{decimals}" if decimals else str(whole)


_MINUTE = 60 * SECOND
_DAY = timedelta(days=1)
_LAST_DAY = date(9990, 1, 1)
# A schedule without a match within so many years never matches (31 February).
_YEARS_AHEAD = 5
_EVERY = "@every "
_NAMED: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class _Field(Struct, frozen=True):
    """The name and range of a field; ``names`` count from the minimum."""

    name: str
    least: int
    most: int
    names: Sequence[str] = ()


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _WEEKDAYS),
)


class Every(Struct, frozen=True):
    """A constant interval, in whole seconds."""

    interval_ns: int

    def next_ns(self, after_ns: int) -> int:
        """Return the first time after another."""
        return (after_ns // SECOND) * SECOND + self.interval_ns


class Schedule(Struct, frozen=True):
    """The minutes that five fields select, in local time of a zone.

    If both the day of the month and the day of the week are restricted, either matches (``either_day``). Local times
    that a clock change skips do not occur; those that it repeats occur twice.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    zone: tzinfo

    def next_ns(self, after_ns: int) -> int | None:
        """Return the first time after another; None if there is none within five years."""
        earliest_ns = (after_ns // _MINUTE + 1) * _MINUTE
        here = (_EPOCH + timedelta(seconds=earliest_ns // SECOND)).astimezone(self.zone)
        # A clock that goes back at midnight repeats part of the day before.
        day = here.date() - _DAY
        last_year = day.year + _YEARS_AHEAD
        while day.year <= last_year and day < _LAST_DAY:
            if day.month not in self.months:
                day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
                continue
            is_day, is_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
            if (is_day or is_weekday) if self.either_day else (is_day and is_weekday):
                found = self._first_on(day, earliest_ns)
                if found is not None:
                    return found
            day += _DAY
        return None

    def _first_on(self, day: date, earliest_ns: int) -> int | None:
        """Return the first time on a local day that is not before ``earliest_ns``."""
        midnight = datetime(day.year, day.month, day.day, tzinfo=self.zone)
        if midnight.utcoffset() == (midnight + _DAY).utcoffset():
            start_ns = round((midnight - _EPOCH).total_seconds()) * SECOND
            hours = (60 * hour for hour in self.hours if start_ns + (60 * hour + 59) * _MINUTE >= earliest_ns)
            times = (start_ns + (hour + minute) * _MINUTE for hour in hours for minute in self.minutes)
            return next((time for time in times if time >= earliest_ns), None)
        found = []
        for hour, minute, fold in product(self.hours, self.minutes, (0, 1)):
            local = midnight.replace(hour=hour, minute=minute, fold=fold)
            back = local.astimezone(UTC).astimezone(self.zone)
            # Aware datetimes of one zone compare by their local time, without their fold.
            if back == local and back.fold == fold:
                found.append(round((back - _EPOCH).total_seconds()) * SECOND)
        return min((time for time in found if time >= earliest_ns), default=None)


@lru_cache(maxsize=4_096)
def parse_schedule(text: str, zone: str = "") -> Schedule | Every:
    """Return the schedule of a CronJob in a time zone ("" is UTC). Raises ValueError.

    The schedule itself may name a zone (`TZ=Europe/Paris 0 6 * * *`), as in old CronJobs.
    """
    prefix = next((known for known in ("CRON_TZ=", "TZ=") if text.startswith(known)), "")
    if prefix:
        zone, _, text = text.removeprefix(prefix).partition(" ")
    found, spec = time_zone(zone), text.strip()
    if spec.startswith(_EVERY):
        seconds = parse_duration(spec.removeprefix(_EVERY).strip()) // SECOND
        return Every(max(1, seconds) * SECOND)
    if spec.startswith("@") and spec not in _NAMED:
        raise ValueError(f"{shown(spec)} is not a schedule; write five fields, @every 1h or {' '.join(_NAMED)}")
    parts = _NAMED.get(spec, spec).split()
    if len(parts) != len(_FIELDS):
        names = ", ".join(field.name for field in _FIELDS)
        raise ValueError(f"{shown(text)} has {len(parts)} fields; write five: {names}, as in 30 6 * * 1-5")
    minutes, hours, days, months, weekdays = (
        frozenset(chain.from_iterable(_read_item(item, field) for item in part.split(",")))
        for part, field in zip(parts, _FIELDS, strict=True)
    )
    is_any_day = any(not _STARS.isdisjoint(parts[place].split(",")) for place in (2, 4))
    return Schedule(tuple(sorted(minutes)), tuple(sorted(hours)), days, months, weekdays, not is_any_day, found)


@lru_cache(maxsize=1_024)
def time_zone(name: str) -> tzinfo:
    """Return a zone of the time zone database; "" is UTC. Raises ValueError."""
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{shown(name)} is not a time zone; write one such as Etc/UTC or Europe/Paris") from None


# Part of a list that leaves its field unrestricted; one with a step above 1 restricts it.
_STARS = frozenset(("*", "?", "*/", "?/", "*/1", "?/1"))


def _read_item(item: str, field: _Field) -> range:
    """Return the numbers of one list item: `*`, `5`, `1-5`, each optionally with a step as in `*/15`."""
    span, slash, step_text = item.partition("/")
    first, dash, last = span.partition("-")
    if span in ("*", "?"):
        least, most = field.least, field.most
    else:
        least = _read_number(first, field)
        # A step without an end extends to the maximum.
        most = _read_number(last, field) if dash else field.most if slash else least
    step = 1
    if slash:
        if not step_text.isascii() or not step_text.isdigit() or len(step_text) > 4 or int(step_text) == 0:
            raise ValueError(f"{shown(step_text)} is not a step of a {field.name}; write 1 or more, as in */15")
        step = int(step_text)
    if least < field.least or most > field.most or least > most:
        raise ValueError(f"{shown(item)} is not a valid {field.name}; write {field.least} to {field.most} or a range")
    return range(least, most + 1, step)


def _read_number(text: str, field: _Field) -> int:
    name = text.lower()
    if name in field.names:
        return field.least + field.names.index(name)
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise ValueError(f"{shown(text)} is not a valid {field.name}; write {field.least} to {field.most}")
    return int(text)
