"""Timestamps and durations in expressions.

Source: cel-spec (timestamps and durations), cel-go common/types (timestamp.go, duration.go). Supported time zones are
UTC and fixed offsets such as "+02:00"; named zones would require reading files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from podium.api.cel.overloads import COMPARISONS, Table, traversal
from podium.api.cel.values import MAX_INT, MIN_INT, EvaluationError
from podium.api.times import any_time, parse_duration

TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
_SECOND, _MILLI = 10**9, 10**6
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400
# From 0001-01-01T00:00:00Z to the end of the year 9999.
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_OFFSET = re.compile(r"([+-]?)(\d{1,2}):(\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A duration."""

    cel_type: ClassVar[str] = DURATION
    ns: int

    @classmethod
    def of(cls, text: str) -> Duration:
        """Return the duration of a text such as "1h30m". Raises EvaluationError."""
        if _DURATION.fullmatch(text) is not None:
            try:
                return cls(parse_duration(text))
            except ValueError:
                pass
        raise EvaluationError(f"time: invalid duration {text[:40]!r}")

    @classmethod
    def within(cls, ns: int) -> Duration:
        """Return the duration of a number of nanoseconds. Raises EvaluationError if it is out of range."""
        if not MIN_INT <= ns <= MAX_INT:
            raise EvaluationError("duration overflow")
        return cls(ns)

    def __str__(self) -> str:
        whole, rest = divmod(abs(self.ns), _SECOND)
        decimals = f".{rest:09}".rstrip("0") if rest else ""
        return f"{'-' if self.ns < 0 else ''}{whole}{decimals}s"


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time, in nanoseconds since 1970."""

    cel_type: ClassVar[str] = TIMESTAMP
    ns: int

    @classmethod
    def of(cls, text: str) -> Timestamp:
        """Return the time of an RFC 3339 text. Raises EvaluationError."""
        try:
            return cls.within(any_time(text))
        except ValueError as error:
            raise EvaluationError(f"cannot parse {text[:40]!r} as a time: {error}") from None

    @classmethod
    def within(cls, ns: int) -> Timestamp:
        """Return the time of a number of nanoseconds. Raises EvaluationError beyond the years 1 to 9999."""
        if not _FIRST_S <= ns // _SECOND <= _LAST_S:
            raise EvaluationError("timestamp overflow")
        return cls(ns)

    def __str__(self) -> str:
        text = self.at("UTC").strftime("%m-%dT%H:%M:%S")
        rest = self.ns % _SECOND
        decimals = f".{rest:09}".rstrip("0") if rest else ""
        return f"{self.at('UTC').year:04}-{text}{decimals}Z"

    def at(self, zone: str) -> datetime:
        """Return the local time in a zone, in whole seconds. Raises EvaluationError for an unknown zone."""
        seconds = self.ns // _SECOND
        if zone not in ("", "UTC", "Z"):
            match = _OFFSET.fullmatch(zone)
            if match is None:
                known = "UTC and offsets such as +02:00 are"
                raise EvaluationError(f"the time zone {zone[:40]!r} is not known here; {known}")
            offset = int(match[2]) * 3_600 + int(match[3]) * 60
            seconds += -offset if match[1] == "-" else offset
        try:
            return _EPOCH + timedelta(days=seconds // _DAY, seconds=seconds % _DAY)
        except OverflowError:
            raise EvaluationError("timestamp overflow") from None


_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
}
_UNITS = {"getHours": 3_600 * _SECOND, "getMinutes": 60 * _SECOND, "getSeconds": _SECOND, "getMilliseconds": _MILLI}


def fill(table: Table) -> None:
    """Add timestamps and durations."""
    table.function("timestamp", ("string",), TIMESTAMP, Timestamp.of, traversal(0))
    table.function("timestamp", ("int",), TIMESTAMP, lambda a: Timestamp.within(a * _SECOND))
    table.function("timestamp", (TIMESTAMP,), TIMESTAMP, lambda a: a)
    table.function("duration", ("string",), DURATION, Duration.of, traversal(0))
    table.function("duration", ("int",), DURATION, lambda a: Duration.within(a * _SECOND))
    table.function("duration", (DURATION,), DURATION, lambda a: a)
    table.function("int", (TIMESTAMP,), "int", lambda a: a.ns // _SECOND)
    table.function("int", (DURATION,), "int", lambda a: a.ns)
    for kind in (TIMESTAMP, DURATION):
        table.function("string", (kind,), "string", str)
    for name, part in _PARTS.items():
        table.method(name, (TIMESTAMP,), "int", lambda a, part=part: part(a.at("UTC")))
        table.method(name, (TIMESTAMP, "string"), "int", lambda a, zone, part=part: part(a.at(zone)))
    table.method("getMilliseconds", (TIMESTAMP,), "int", lambda a: a.ns % _SECOND // _MILLI)
    table.method("getMilliseconds", (TIMESTAMP, "string"), "int", lambda a, zone: a.ns % _SECOND // _MILLI)
    for name, unit in _UNITS.items():
        table.method(name, (DURATION,), "int", lambda a, unit=unit: -(-a.ns // unit) if a.ns < 0 else a.ns // unit)
    table.function("_+_", (TIMESTAMP, DURATION), TIMESTAMP, lambda a, b: Timestamp.within(a.ns + b.ns))
    table.function("_+_", (DURATION, TIMESTAMP), TIMESTAMP, lambda a, b: Timestamp.within(a.ns + b.ns))
    table.function("_+_", (DURATION, DURATION), DURATION, lambda a, b: Duration.within(a.ns + b.ns))
    table.function("_-_", (TIMESTAMP, TIMESTAMP), DURATION, lambda a, b: Duration.within(a.ns - b.ns))
    table.function("_-_", (TIMESTAMP, DURATION), TIMESTAMP, lambda a, b: Timestamp.within(a.ns - b.ns))
    table.function("_-_", (DURATION, DURATION), DURATION, lambda a, b: Duration.within(a.ns - b.ns))
    table.function("-_", (DURATION,), DURATION, lambda a: Duration.within(-a.ns))
    for name, compare in COMPARISONS.items():
        for kind in (TIMESTAMP, DURATION):
            table.function(name, (kind, kind), "bool", compare)
