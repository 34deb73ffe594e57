"""The schedules of CronJobs: five cron fields, or a name such as @hourly.

The rules of github.com/robfig/cron/v3 (ParseStandard, SpecSchedule.Next), with which Kubernetes parses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import chain
from zoneinfo import ZoneInfo

from podium.api.errors import shown
from podium.api.times import parse_duration

_SECOND = 10**9
_MINUTE = 60 * _SECOND
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_DAY = date(9990, 1, 1)
# A schedule without a match within so many years never matches (31 February).
_YEARS_AHEAD = 5
_ZONE_PREFIXES = ("CRON_TZ=", "TZ=")
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


@dataclass(frozen=True, slots=True)
class _Field:
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


@dataclass(frozen=True, slots=True)
class Every:
    """A constant interval, in whole seconds."""

    interval_ns: int

    def next_ns(self, after_ns: int) -> int:
        """Return the first time after another."""
        return (after_ns // _SECOND) * _SECOND + self.interval_ns


@dataclass(frozen=True, slots=True)
class Schedule:
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
        here = (_EPOCH + timedelta(seconds=earliest_ns // _SECOND)).astimezone(self.zone)
        # A clock that goes back at midnight repeats part of the day before.
        day = here.date() - _DAY
        last_year = day.year + _YEARS_AHEAD
        while day.year <= last_year and day < _LAST_DAY:
            if day.month not in self.months:
                day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
                continue
            is_day, is_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
            if (is_day or is_weekday) if self.either_day else (is_day and is_weekday):
                found = min((time for time in self._times_on(day) if time >= earliest_ns), default=None)
                if found is not None:
                    return found
            day += _DAY
        return None

    def _times_on(self, day: date) -> Iterator[int]:
        """Yield the times on a local day, in nanoseconds."""
        midnight = datetime(day.year, day.month, day.day, tzinfo=self.zone)
        is_plain = midnight.utcoffset() == (midnight + _DAY).utcoffset()
        for hour in self.hours:
            for minute in self.minutes:
                for fold in (0,) if is_plain else (0, 1):
                    local = midnight.replace(hour=hour, minute=minute, fold=fold)
                    time = local.astimezone(UTC)
                    back = time.astimezone(self.zone)
                    # Aware datetimes of one zone compare by their local time, without their fold.
                    if is_plain or (back == local and back.fold == fold):
                        yield round((time - _EPOCH).total_seconds()) * _SECOND


@lru_cache(maxsize=4_096)
def parse_schedule(text: str, zone: str = "") -> Schedule | Every:
    """Return the schedule of a CronJob in a time zone ("" is UTC). Raises ValueError.

    The schedule itself may name a zone (`TZ=Europe/Paris 0 6 * * *`), as in old CronJobs.
    """
    prefix = next((known for known in _ZONE_PREFIXES if text.startswith(known)), "")
    if prefix:
        zone, _, text = text.removeprefix(prefix).partition(" ")
    found, spec = time_zone(zone), text.strip()
    if spec.startswith(_EVERY):
        seconds = parse_duration(spec.removeprefix(_EVERY).strip()) // _SECOND
        return Every(max(1, seconds) * _SECOND)
    if spec.startswith("@") and spec not in _NAMED:
        raise ValueError(f"{shown(spec)} is no schedule; write five fields, @every 1h, or one of {', '.join(_NAMED)}")
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
        raise ValueError(f"{shown(name)} is no time zone; write one such as Etc/UTC or Europe/Paris") from None


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
            raise ValueError(f"{shown(step_text)} is no step of a {field.name}; write 1 or more, as in */15")
        step = int(step_text)
    if least < field.least or most > field.most or least > most:
        raise ValueError(f"{shown(item)} is no {field.name}; write {field.least} to {field.most}, or a span of these")
    return range(least, most + 1, step)


def _read_number(text: str, field: _Field) -> int:
    name = text.lower()
    if name in field.names:
        return field.least + field.names.index(name)
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise ValueError(f"{shown(text)} is no {field.name}; write {field.least} to {field.most}")
    return int(text)
