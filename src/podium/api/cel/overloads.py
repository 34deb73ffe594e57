"""Functions, methods and operators: their argument types, result types and costs.

Costs are counted as by cel-go's tracker and Kubernetes' estimator: one for constant-time operations, else by the sizes
of the operands (interpreter/runtimecost.go; apiserver/pkg/cel/library/cost.go).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple, NoReturn

from podium.api.cel import values
from podium.api.cel.values import NONE, OPTIONAL, EvaluationError, Optional, UInt, Value

DYN = "dyn"
Costing = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Overload:
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


@dataclass(frozen=True, slots=True)
class Function:
    """All overloads of a name."""

    name: str
    overloads: list[Overload] = field(default_factory=list)

    def of_values(self, arguments: tuple[Value, ...]) -> Overload:
        """Return the overload for these arguments. Raises EvaluationError."""
        types = tuple(values.type_name(value) for value in arguments)
        for overload in self.overloads:
            if overload.accepts(types):
                return overload
        said = f"{self.name}({', '.join(types)})"
        raise EvaluationError(f"no such overload: {said}" if self.name[0].isalpha() else "no such overload")


def constant(*_: Value) -> int:
    """Return the cost of a constant-time operation."""
    return 1


def tenth(size: int) -> int:
    """Return the cost of one pass over a text of that size."""
    return -(-size // 10)


def traversal(index: int) -> Costing:
    """Return the cost function of one pass over an argument."""
    return lambda *args: tenth(values.size_of(args[index]))


def of_smaller(*args: Value) -> int:
    """Return the cost of a comparison."""
    return tenth(min(values.size_of(args[0]), values.size_of(args[1])))


def of_product(*args: Value) -> int:
    """Return the cost of a substring search."""
    return tenth(values.size_of(args[0])) * tenth(values.size_of(args[1]))


def checked(value: int) -> int:
    """Return an integer. Raises EvaluationError if it does not fit 64 bits."""
    if not values.MIN_INT <= value <= values.MAX_INT:
        raise EvaluationError("integer overflow")
    return value


def checked_unsigned(value: int) -> UInt:
    """Return an unsigned integer. Raises EvaluationError if it does not fit 64 bits."""
    if not 0 <= value <= values.MAX_UINT:
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


class Table(NamedTuple):
    """The global functions, and the methods."""

    function: Functions
    method: Functions


_NUMBERS = ("int", "uint", "double")


def fill_operators(table: Table) -> None:
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
        for type_ in ("bool", *_NUMBERS, "string", "bytes"):
            table.function(
                name, (type_, type_), "bool", lambda a, b, f=compare: f(values.number(a), values.number(b)), of_smaller
            )
        for pair in permutations(_NUMBERS, 2):
            table.function(name, pair, "bool", lambda a, b, f=compare: f(values.number(a), values.number(b)))
    table.function("_==_", (DYN, DYN), "bool", values.equal, of_smaller)
    table.function("_!=_", (DYN, DYN), "bool", lambda a, b: not values.equal(a, b), of_smaller)
    table.function("@in", (DYN, "list"), "bool", _is_in, lambda _, some: values.size_of(some))
    table.function("@in", (DYN, "map"), "bool", lambda a, b: a in b if isinstance(a, str) else _is_in(a, b))
    table.function("_[_]", ("list", DYN), DYN, _index)


COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
"""The operators of ordered types."""


def _is_in(item: Value, some: Iterable[Value]) -> bool:
    return any(values.equal(item, member) for member in some)


def _index(some: Value, index: Value) -> Value:
    if not values.is_number(index) or values.number(index) != int(values.number(index)):
        raise EvaluationError("no such overload")
    place = int(values.number(index))
    if not 0 <= place < len(some):
        raise EvaluationError(f"index out of bounds: {place}")
    return some[place]


def fill_optionals(table: Table) -> None:
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
        return not values.number(value)
    return value is None or (isinstance(value, str | bytes | tuple | dict) and not value)


def _raise() -> NoReturn:
    raise EvaluationError("optional.none() dereference")
