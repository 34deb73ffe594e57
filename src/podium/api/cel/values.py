"""The values of expressions, and their errors.

Most values are Python's own: bool, int, float, str, bytes, None, tuples and dictionaries. Types that CEL distinguishes
and Python does not have classes here; quantities and versions are Kubernetes' own types (apiserver/pkg/cel/library).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Any, ClassVar

from podium.api.quantity import parse_quantity

Value = Any
NANO = 10**9
MIN_INT, MAX_INT, MAX_UINT = -(2**63), 2**63 - 1, 2**64 - 1
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
_MAX_VERSION = 256


class CompileError(Exception):
    """An error for an expression that cannot be compiled."""


class EvaluationError(Exception):
    """An error for an expression without a value for this input; that is not the same as false."""


@dataclass(frozen=True, slots=True)
class UInt:
    """An unsigned integer."""

    value: int


@total_ordering
@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity, in nano units."""

    nano: int

    @classmethod
    def of(cls, text: str | int | float) -> Quantity:
        """Return the quantity of a text. Raises EvaluationError."""
        try:
            return cls(parse_quantity(text))
        except ValueError as error:
            raise EvaluationError(str(error)) from None

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano


@total_ordering
@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version 2.0.0. Build metadata does not count in comparisons."""

    major: int
    minor: int
    patch: int
    pre_release: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Semver:
        """Return the version of a text. Raises EvaluationError."""
        match = _SEMVER.fullmatch(text) if len(text) <= _MAX_VERSION else None
        if match is None:
            raise EvaluationError(f"{text[:40]!r} is no semantic version")
        major, minor, patch = (int(match[number]) for number in (1, 2, 3))
        if max(major, minor, patch) > MAX_UINT:
            raise EvaluationError(f"{text[:40]!r} has a number that is too large")
        return cls(major, minor, patch, tuple(match[4].split(".")) if match[4] else ())

    @property
    def order(self) -> tuple[Any, ...]:
        """The sort key: a pre-release precedes its release, numbers precede words."""
        identifiers = tuple(
            (0, int(identifier), "") if identifier.isdigit() else (1, 0, identifier) for identifier in self.pre_release
        )
        return self.major, self.minor, self.patch, not identifiers, identifiers

    def __lt__(self, other: Semver) -> bool:
        return self.order < other.order


def reads(read: Callable[..., object], *args: Value) -> bool:
    """Return whether a function reads a text, for which it otherwise raises EvaluationError or ValueError."""
    try:
        read(*args)
    except (EvaluationError, ValueError):
        return False
    return True


@lru_cache(maxsize=1_024)
def pattern_of(text: str) -> Any:
    """Return a regular expression that matches in time linear in the text. Raises EvaluationError."""
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - few inputs have any

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options=options)
    except re2.error as error:
        raise EvaluationError(f"error parsing regexp: {error}") from None


OPTIONAL = "optional_type"


@dataclass(frozen=True, slots=True)
class Optional:
    """An optional value."""

    cel_type: ClassVar[str] = OPTIONAL
    value: Value = None
    is_there: bool = True


NONE = Optional(is_there=False)
"""The absent optional value."""


class WithDefault(dict[str, Value]):
    """A map in which an unknown key has an empty map as its value: the domains of a device's attributes."""


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    dict: "map",
    WithDefault: "map",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    **dict.fromkeys((IPv4Address, IPv6Address), "net.IP"),
    **dict.fromkeys((IPv4Interface, IPv6Interface), "net.CIDR"),
}


def type_name(value: Value) -> str:
    """Return the name of a value's type; types of libraries define their own."""
    name = _NAMES.get(type(value))
    return value.cel_type if name is None else name


def is_number(value: Value) -> bool:
    """Return whether the value is an int, uint or double."""
    return type(value) in (int, float, UInt)


def number(value: Value) -> int | float:
    """Return the Python number of a numeric value, for comparisons across types."""
    return value.value if isinstance(value, UInt) else value


def equal(left: Value, right: Value) -> bool:
    """Return whether two values are equal: numbers by amount, others of one type by content, different types never."""
    if is_number(left) and is_number(right):
        return number(left) == number(right)
    if type_name(left) != type_name(right):
        return False
    if isinstance(left, tuple):
        return len(left) == len(right) and all(equal(*pair) for pair in zip(left, right, strict=True))
    if isinstance(left, Mapping):
        return len(left) == len(right) and all(key in right and equal(left[key], right[key]) for key in left)
    if isinstance(left, Optional):
        return left.is_there == right.is_there and equal(left.value, right.value)
    return left == right  # type: ignore[no-any-return]


def size_of(value: Value) -> int:
    """Return the size of a value for cost estimation: its length, 1 for values without one."""
    return len(value) if isinstance(value, str | bytes | tuple | dict) else 1
