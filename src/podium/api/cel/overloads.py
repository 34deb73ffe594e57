"""Functions, methods and operators: their argument types, result types and costs.

Costs are counted as by cel-go's tracker and Kubernetes' estimator: one for constant-time operations, else by the sizes
of the operands (interpreter/runtimecost.go; apiserver/pkg/cel/library/cost.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from podium.api.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NONE,
    OPTIONAL,
    EvaluationError,
    Optional,
    UInt,
    Value,
    equal,
    is_number,
    number,
    size_of,
    type_name,
)

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
    overloads: tuple[Overload, ...]

    def of_types(self, types: tuple[str, ...]) -> tuple[Overload, ...]:
        """Return the overloads that may match arguments of these types."""
        return tuple(overload for overload in self.overloads if overload.accepts(types))

    def of_values(self, values: tuple[Value, ...]) -> Overload:
        """Return the overload for these arguments. Raises EvaluationError."""
        types = tuple(type_name(value) for value in values)
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
    return lambda *args: tenth(size_of(args[index]))


def of_both(*args: Value) -> int:
    """Return the cost of a concatenation."""
    return tenth(size_of(args[0]) + size_of(args[1]))


def of_smaller(*args: Value) -> int:
    """Return the cost of a comparison."""
    return tenth(min(size_of(args[0]), size_of(args[1])))


def of_product(*args: Value) -> int:
    """Return the cost of a substring search."""
    return tenth(size_of(args[0])) * tenth(size_of(args[1]))


def _checked(value: int) -> int:
    if not MIN_INT <= value <= MAX_INT:
        raise EvaluationError("integer overflow")
    return value


def _unsigned(value: int) -> UInt:
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


def _arithmetic() -> dict[str, list[Overload]]:
    whole: dict[str, Callable[[int, int], int]] = {
        "_+_": lambda a, b: a + b,
        "_-_": lambda a, b: a - b,
        "_*_": lambda a, b: a * b,
        "_/_": _divided,
        "_%_": _rest,
    }
    found: dict[str, list[Overload]] = {}
    for name, apply in whole.items():
        found[name] = [
            Overload(("int", "int"), "int", lambda a, b, f=apply: _checked(f(a, b)), constant),
            Overload(("uint", "uint"), "uint", lambda a, b, f=apply: _unsigned(f(a.value, b.value)), constant),
        ]
    real: dict[str, Callable[[float, float], float]] = {
        "_+_": lambda a, b: a + b,
        "_-_": lambda a, b: a - b,
        "_*_": lambda a, b: a * b,
        "_/_": _float_divided,
    }
    for name, divide in real.items():
        found[name].append(Overload(("double", "double"), "double", divide, constant))
    for joined in ("string", "bytes"):
        found["_+_"].append(Overload((joined, joined), joined, lambda a, b: a + b, of_both))
    found["_+_"].append(Overload(("list", "list"), "list", lambda a, b: a + b, constant))
    found["-_"] = [
        Overload(("int",), "int", lambda a: _checked(-a), constant),
        Overload(("double",), "double", lambda a: -a, constant),
    ]
    found["!_"] = [Overload(("bool",), "bool", lambda a: not a, constant)]
    return found


_ORDERED = ("bool", "int", "uint", "double", "string", "bytes")
_COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "_<_": lambda a, b: a < b,
    "_<=_": lambda a, b: a <= b,
    "_>_": lambda a, b: a > b,
    "_>=_": lambda a, b: a >= b,
}


def _comparisons() -> dict[str, list[Overload]]:
    found: dict[str, list[Overload]] = {}
    for name, compare in _COMPARISONS.items():
        same = [Overload((type_, type_), "bool", _compared(compare), of_smaller) for type_ in _ORDERED]
        numbers = ("int", "uint", "double")
        mixed = [
            Overload((left, right), "bool", _compared(compare), constant)
            for left in numbers
            for right in numbers
            if left != right
        ]
        found[name] = same + mixed
    found["_==_"] = [Overload((DYN, DYN), "bool", equal, of_smaller)]
    found["_!=_"] = [Overload((DYN, DYN), "bool", lambda a, b: not equal(a, b), of_smaller)]
    found["@in"] = [
        Overload((DYN, "list"), "bool", lambda item, some: any(equal(item, member) for member in some), _of_list),
        Overload((DYN, "map"), "bool", _is_key, constant),
    ]
    return found


def _compared(compare: Callable[[Value, Value], bool]) -> Callable[[Value, Value], bool]:
    def compared(left: Value, right: Value) -> bool:
        if is_number(left) and is_number(right):
            return compare(number(left), number(right))
        return compare(left, right)

    return compared


def _of_list(*args: Value) -> int:
    return size_of(args[1])


def _is_key(key: Value, some: Value) -> bool:
    return any(equal(key, member) for member in some) if not isinstance(key, str) else key in some


def _index(some: Value, index: Value) -> Value:
    if not is_number(index) or number(index) != int(number(index)):
        raise EvaluationError("no such overload")
    place = int(number(index))
    if not 0 <= place < len(some):
        raise EvaluationError(f"index out of bounds: {place}")
    return some[place]


def operators(further: Mapping[str, Sequence[Overload]]) -> dict[str, Function]:
    """Return all operators under cel-go's names, with ``further`` overloads."""
    found = {**_arithmetic(), **_comparisons()}
    for name, overloads in further.items():
        found[name] += overloads
    found["_[_]"] = [Overload(("list", DYN), DYN, _index, constant)]
    return {name: Function(name, tuple(overloads)) for name, overloads in found.items()}


class Table:
    """Overloads by name: of functions, of methods, and of operators under cel-go's names."""

    def __init__(self) -> None:
        self.functions: dict[str, list[Overload]] = {}
        self.methods: dict[str, list[Overload]] = {}
        self.operators: dict[str, list[Overload]] = {}

    def function(
        self,
        name: str,
        takes: tuple[str, ...],
        gives: str,
        call: Callable[..., Value],
        cost: Callable[..., int] = constant,
    ) -> None:
        """Add an overload of a global function."""
        self.functions.setdefault(name, []).append(Overload(takes, gives, call, cost))

    def method(
        self,
        name: str,
        takes: tuple[str, ...],
        gives: str,
        call: Callable[..., Value],
        cost: Callable[..., int] = constant,
    ) -> None:
        """Add an overload of a method; its target is the first argument."""
        self.methods.setdefault(name, []).append(Overload(takes, gives, call, cost))

    def operator(self, name: str, takes: tuple[str, ...], gives: str, call: Callable[..., Value]) -> None:
        """Add an overload of an operator."""
        self.operators.setdefault(name, []).append(Overload(takes, gives, call, constant))


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
        return not number(value)
    return value is None or (isinstance(value, str | bytes | tuple | dict) and not value)


def _raise() -> NoReturn:
    raise EvaluationError("optional.none() dereference")
