"""Timestamps, durations, IP addresses, CIDRs and URLs in expressions.

Source: cel-spec (timestamps and durations), cel-go common/types (timestamp.go, duration.go); apiserver/pkg/cel/library
(ip.go, cidr.go, urls.go), net/netip and net/url. Supported time zones are UTC and fixed offsets such as "+02:00"; named
zones would require reading files.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import ClassVar

from podium.api.cel.values import COMPARISONS, MAX_INT, MIN_INT, EvaluationError, FunctionTable, reads, traversal
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
class DurationValue:
    """A duration."""

    cel_type: ClassVar[str] = DURATION
    ns: int

    @classmethod
    def of(cls, text: str) -> DurationValue:
        """Return the duration of a text such as "1h30m". Raises EvaluationError."""
        if _DURATION.fullmatch(text) is not None:
            try:
                return cls(parse_duration(text))
            except ValueError:
                pass
        raise EvaluationError(f"time: invalid duration {text[:40]!r}")

    @classmethod
    def within(cls, ns: int) -> DurationValue:
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


def fill_times(table: FunctionTable) -> None:
    """Add timestamps and durations."""
    for name, type_ in (("timestamp", Timestamp), ("duration", DurationValue)):
        kind = type_.cel_type
        table.function(name, ("string",), kind, type_.of, traversal(0))
        table.function(name, ("int",), kind, lambda a, within=type_.within: within(a * _SECOND))
        table.function(name, (kind,), kind, lambda a: a)
        table.function("string", (kind,), "string", str)
        for operator, compare in COMPARISONS.items():
            table.function(operator, (kind, kind), "bool", compare)
    table.function("int", (TIMESTAMP,), "int", lambda a: a.ns // _SECOND)
    table.function("int", (DURATION,), "int", lambda a: a.ns)
    for name, part in _PARTS.items():
        table.method(name, (TIMESTAMP,), "int", lambda a, part=part: part(a.at("UTC")))
        table.method(name, (TIMESTAMP, "string"), "int", lambda a, zone, part=part: part(a.at(zone)))
    table.method("getMilliseconds", (TIMESTAMP,), "int", lambda a: a.ns % _SECOND // _MILLI)
    table.method("getMilliseconds", (TIMESTAMP, "string"), "int", lambda a, zone: a.ns % _SECOND // _MILLI)
    for name, unit in _UNITS.items():
        table.method(name, (DURATION,), "int", lambda a, unit=unit: -(-a.ns // unit) if a.ns < 0 else a.ns // unit)
    table.function("_+_", (TIMESTAMP, DURATION), TIMESTAMP, lambda a, b: Timestamp.within(a.ns + b.ns))
    table.function("_+_", (DURATION, TIMESTAMP), TIMESTAMP, lambda a, b: Timestamp.within(a.ns + b.ns))
    table.function("_+_", (DURATION, DURATION), DURATION, lambda a, b: DurationValue.within(a.ns + b.ns))
    table.function("_-_", (TIMESTAMP, TIMESTAMP), DURATION, lambda a, b: DurationValue.within(a.ns - b.ns))
    table.function("_-_", (TIMESTAMP, DURATION), TIMESTAMP, lambda a, b: Timestamp.within(a.ns - b.ns))
    table.function("_-_", (DURATION, DURATION), DURATION, lambda a, b: DurationValue.within(a.ns - b.ns))
    table.function("-_", (DURATION,), DURATION, lambda a: DurationValue.within(-a.ns))


IP, CIDR, URL = "net.IP", "net.CIDR", "kubernetes.URL"
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_PREFIX = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)
_ABSOLUTE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(.*)", re.ASCII | re.DOTALL)
_HOST = re.compile(
    r"(?:\[[0-9A-Fa-f:.%]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=\"<>-]|[^\x00-\x7f]|%[0-9A-Fa-f]{2})*)(?::([0-9]*))?"
)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")
_UNESCAPED = re.compile(rb"[^A-Za-z0-9$&+,/:;=@\-._~!'()*%\[\]]")
_ESCAPE = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute URL, or an absolute path."""

    cel_type: ClassVar[str] = URL
    scheme: str
    host: str
    path: str
    query: str

    @classmethod
    def of(cls, text: str) -> Url:
        """Return the URL of a text. Raises EvaluationError for a relative or malformed one."""
        problem = EvaluationError(f"URL parse error during conversion from string: parse {text[:60]!r}: invalid URI")
        match = _ABSOLUTE.fullmatch(text)
        if match is None or not text or _UNPRINTABLE.search(text):
            raise problem
        scheme, rest = (match[1] or "").lower(), match[2]
        rest, _, query = rest.partition("?")
        if not rest.startswith("/"):
            if not scheme:
                raise problem
            # mailto:someone: an opaque URL has no path.
            return cls(scheme, "", "", query)
        host = ""
        if rest.startswith("//") and (scheme or not rest.startswith("///")):
            host, slash, path = rest[2:].partition("/")
            rest = slash + path
            host = host.rpartition("@")[2]
        if _HOST.fullmatch(host) is None or _BROKEN_ESCAPE.search(rest):
            raise problem
        return cls(scheme, host, rest, query)

    @property
    def hostname(self) -> str:
        """The host without its port, and without the brackets of an IPv6 address."""
        name, colon, port = self.host.rpartition(":")
        name = name if colon and port.isdigit() | (not port) and not port.endswith("]") else self.host
        return name.removeprefix("[").removesuffix("]")

    @property
    def port(self) -> str:
        """The port, "" without one."""
        match = _HOST.fullmatch(self.host)
        return (match[1] or "") if match is not None else ""

    @property
    def escaped_path(self) -> str:
        return _UNESCAPED.sub(lambda found: b"%%%02X" % found[0][0], self.path.encode()).decode()

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """The values of the query by name, in order."""
        found: dict[str, tuple[str, ...]] = {}
        for part in self.query.split("&"):
            name, _, value = part.partition("=")
            if part and ";" not in part and not _BROKEN_ESCAPE.search(part):
                name, value = (_plain(text.replace("+", " ")) for text in (name, value))
                found[name] = (*found.get(name, ()), value)
        return found


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode(errors="replace"), text)


def _address(text: str, problem: str = "") -> _Address:
    """Return the address of a text. Raises EvaluationError; zones and IPv4-mapped IPv6 addresses are refused."""
    problem = problem or f"IP Address {text[:60]!r} parse error during conversion from string"
    try:
        if "%" in text or len(text) > 64:
            raise EvaluationError(problem)
        found = ipaddress.ip_address(text)
    except ValueError:
        raise EvaluationError(problem) from None
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        raise EvaluationError(f"{problem}: IPv4-mapped IPv6 address is not allowed")
    return found


def _is_global(address: _Address) -> bool:
    """Return whether it is a global unicast address by Go's definition, which includes private ones."""
    if address == ipaddress.IPv4Address("255.255.255.255"):
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)


def _is_link_local_multicast(address: _Address) -> bool:
    """Return whether it is in 224.0.0.0/24 or ff02::/16."""
    packed = address.packed
    return packed[:3] == b"\xe0\x00\x00" if address.version == 4 else packed[0] == 0xFF and packed[1] & 15 == 2


def _network(text: str) -> _Network:
    """Return the network of a text: an address with a prefix length (CIDR). Raises EvaluationError."""
    problem = f"network address parse error during conversion from string: {text[:60]!r}"
    head, slash, length = text.rpartition("/")
    if not slash or _PREFIX.fullmatch(length) is None:
        raise EvaluationError(problem)
    address = _address(head, problem)
    if int(length) > address.max_prefixlen:
        raise EvaluationError(problem)
    return ipaddress.ip_interface((address, int(length)))


def _has_address(network: _Network, address: _Address) -> bool:
    return address.version == network.version and address in network.network


def _has_network(network: _Network, other: _Network) -> bool:
    return network.network.prefixlen <= other.network.prefixlen and _has_address(network, other.ip)


def fill_addresses(table: FunctionTable) -> None:
    """Add addresses, networks and URLs."""
    cost = traversal(0)
    for name, test, kind, read in (
        ("ip", "isIP", IP, _address),
        ("cidr", "isCIDR", CIDR, _network),
        ("url", "isURL", URL, Url.of),
    ):
        table.function(name, ("string",), kind, read, cost)
        table.function(test, ("string",), "bool", lambda a, read=read: reads(read, a), cost)
    table.function("ip.isCanonical", ("string",), "bool", lambda a: str(_address(a)) == a, cost)
    for kind in (IP, CIDR):
        table.function("string", (kind,), "string", str)
    table.method("family", (IP,), "int", attrgetter("version"))
    table.method("isUnspecified", (IP,), "bool", attrgetter("is_unspecified"))
    table.method("isLoopback", (IP,), "bool", attrgetter("is_loopback"))
    table.method("isLinkLocalMulticast", (IP,), "bool", _is_link_local_multicast)
    table.method("isLinkLocalUnicast", (IP,), "bool", attrgetter("is_link_local"))
    table.method("isGlobalUnicast", (IP,), "bool", _is_global)
    table.method("containsIP", (CIDR, IP), "bool", _has_address)
    table.method("containsIP", (CIDR, "string"), "bool", lambda a, b: _has_address(a, _address(b)), traversal(1))
    table.method("containsCIDR", (CIDR, CIDR), "bool", _has_network)
    table.method("containsCIDR", (CIDR, "string"), "bool", lambda a, b: _has_network(a, _network(b)), traversal(1))
    table.method("ip", (CIDR,), IP, attrgetter("ip"))
    table.method("masked", (CIDR,), CIDR, lambda a: ipaddress.ip_interface(str(a.network)))
    table.method("prefixLength", (CIDR,), "int", lambda a: a.network.prefixlen)
    for name, field in (
        ("getScheme", "scheme"),
        ("getHost", "host"),
        ("getHostname", "hostname"),
        ("getPort", "port"),
        ("getEscapedPath", "escaped_path"),
    ):
        table.method(name, (URL,), "string", attrgetter(field))
    table.method("getQuery", (URL,), "map", lambda a: a.values)
