"""The values of expressions, their errors, and the overloads of functions on them, with the operators.

Most values are Python's own: bool, int, float, str, bytes, None, tuples and dictionaries. Types that CEL distinguishes
and Python does not have classes here; quantities and versions are Kubernetes' own types (apiserver/pkg/cel/library).

Costs are counted as by cel-go's tracker and Kubernetes' estimator: one for constant-time operations, else by the sizes
of the operands (interpreter/runtimecost.go; apiserver/pkg/cel/library/cost.go).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from itertools import permutations
from typing import Any, ClassVar, NamedTuple, NoReturn

from msgspec import Struct

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


@dataclass(frozen=True, slots=True, order=True)
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
            raise EvaluationError(f"{text[:40]!r} is not a semantic version")
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


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, as in `type(x) == int`."""

    cel_type: ClassVar[str] = "type"
    value: str


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


DYN = "dyn"
Costing = Callable[..., int]


class Overload(Struct, frozen=True):
    """An overload of a function. ``takes`` are the types of its arguments, a method's target first."""

    takes: tuple[str, ...]
    gives: str
    call: Callable[..., Value]
    cost: Costing

    def accepts(self, types: tuple[str, ...]) -> bool:
        """Return whether arguments of these types may match; dyn matches any type."""
        return len(types) == len(self.takes) and all(
            DYN in pair or pair[0] == pair[1] for pair in zip(self.takes, types, strict=True)
        )


class Function(Struct, frozen=True):
    """All overloads of a name."""

    name: str
    overloads: list[Overload] = []

    def of_values(self, arguments: tuple[Value, ...]) -> Overload:
        """Return the overload for these arguments. Raises EvaluationError."""
        types = tuple(type_name(value) for value in arguments)
        for overload in self.overloads:
            if overload.accepts(types):
                return overload
        signature = f"{self.name}({', '.join(types)})"
        raise EvaluationError(f"no such overload: {signature}" if self.name[0].isalpha() else "no such overload")


def constant(*_: Value) -> int:
    """Return the cost of a constant-time operation."""
    return 1


def tenth(size: int) -> int:
    """Return the cost of one pass over a text of that size."""
    return -(-size // 10)


def traversal(index: int) -> Costing:
    """Return the cost function of one pass over an argument."""
    return lambda *args: tenth(size_of(args[index]))


def of_smaller(*args: Value) -> int:
    """Return the cost of a comparison."""
    return tenth(min(size_of(args[0]), size_of(args[1])))


def of_product(*args: Value) -> int:
    """Return the cost of a substring search."""
    return tenth(size_of(args[0])) * tenth(size_of(args[1]))


def checked(value: int) -> int:
    """Return an integer. Raises EvaluationError if it does not fit 64 bits."""
    if not MIN_INT <= value <= MAX_INT:
        raise EvaluationError("integer overflow")
    return value


def checked_unsigned(value: int) -> UInt:
    """Return an unsigned integer. Raises EvaluationError if it does not fit 64 bits."""
    if not 0 <= value <= MAX_UINT:
        raise EvaluationError("unsigned integer overflow")
    return UInt(value)


def _divided(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _rest(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _float_divided(left: float, right: float) -> float:
    if right == 0:
        return float("nan") if left == 0 else float("inf") if left > 0 else float("-inf")
    return left / right


class Functions(dict[str, Function]):
    """Functions or methods by name; operators are functions under cel-go's names."""

    def __call__(
        self, name: str, takes: tuple[str, ...], gives: str, call: Callable[..., Value], cost: Costing = constant
    ) -> None:
        """Add an overload; the target of a method is its first argument."""
        self.setdefault(name, Function(name)).overloads.append(Overload(takes, gives, call, cost))


class FunctionTable(NamedTuple):
    """The global functions, and the methods."""

    function: Functions
    method: Functions


NUMBERS = ("int", "uint", "double")
"""The types of numbers."""


def fill_operators(table: FunctionTable) -> None:
    """Add the operators of CEL's own types."""
    whole: dict[str, Callable[[int, int], int]] = {
        "_+_": operator.add,
        "_-_": operator.sub,
        "_*_": operator.mul,
        "_/_": _divided,
        "_%_": _rest,
    }
    for name, apply in whole.items():
        table.function(name, ("int", "int"), "int", lambda a, b, f=apply: checked(f(a, b)))
        table.function(name, ("uint", "uint"), "uint", lambda a, b, f=apply: checked_unsigned(f(a.value, b.value)))
        if name != "_%_":
            on_doubles = _float_divided if name == "_/_" else apply
            table.function(name, ("double", "double"), "double", on_doubles)
    for joined in ("string", "bytes"):
        table.function("_+_", (joined, joined), joined, operator.add, lambda a, b: tenth(len(a) + len(b)))
    table.function("_+_", ("list", "list"), "list", operator.add)
    table.function("-_", ("int",), "int", lambda a: checked(-a))
    table.function("-_", ("double",), "double", operator.neg)
    table.function("!_", ("bool",), "bool", operator.not_)
    for name, compare in COMPARISONS.items():
        for type_ in ("bool", *NUMBERS, "string", "bytes"):
            table.function(name, (type_, type_), "bool", lambda a, b, f=compare: f(number(a), number(b)), of_smaller)
        for pair in permutations(NUMBERS, 2):
            table.function(name, pair, "bool", lambda a, b, f=compare: f(number(a), number(b)))
    table.function("_==_", (DYN, DYN), "bool", equal, of_smaller)
    table.function("_!=_", (DYN, DYN), "bool", lambda a, b: not equal(a, b), of_smaller)
    table.function("@in", (DYN, "list"), "bool", is_in, lambda _, some: size_of(some))
    table.function("@in", (DYN, "map"), "bool", lambda a, b: a in b if isinstance(a, str) else is_in(a, b))
    table.function("_[_]", ("list", DYN), DYN, _index)


COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
"""The operators of ordered types."""


def is_in(item: Value, some: Iterable[Value]) -> bool:
    """Return whether an item is equal to one of some values."""
    return any(equal(item, member) for member in some)


def _index(some: Value, index: Value) -> Value:
    if not is_number(index) or number(index) != int(number(index)):
        raise EvaluationError("no such overload")
    place = int(number(index))
    if not 0 <= place < len(some):
        raise EvaluationError(f"index out of bounds: {place}")
    return some[place]


def fill_optionals(table: FunctionTable) -> None:
    """Add optional values; `optMap` and `optFlatMap` are macros.

    Source: cel-go cel/library.go (OptionalTypes), common/types/optional.go.
    """
    both = (OPTIONAL, OPTIONAL)
    table.function("optional.of", (DYN,), OPTIONAL, Optional)
    table.function("optional.none", (), OPTIONAL, lambda: NONE)
    table.function("optional.ofNonZeroValue", (DYN,), OPTIONAL, lambda a: NONE if _is_zero(a) else Optional(a))
    table.method("hasValue", (OPTIONAL,), "bool", lambda a: a.is_there)
    table.method("value", (OPTIONAL,), DYN, lambda a: a.value if a.is_there else _raise())
    table.method("or", both, OPTIONAL, lambda a, b: a if a.is_there else b)
    table.method("orValue", (OPTIONAL, DYN), DYN, lambda a, b: a.value if a.is_there else b)


def _is_zero(value: Value) -> bool:
    if isinstance(value, int | float | UInt):
        return not number(value)
    return value is None or (isinstance(value, str | bytes | tuple | dict) and not value)


def _raise() -> NoReturn:
    raise EvaluationError("optional.none() dereference")
