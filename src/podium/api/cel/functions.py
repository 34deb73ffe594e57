"""The functions and methods of expressions: CEL's own, those for strings and lists, quantities and versions.

Source: cel-spec (standard definitions), cel-go ext (strings, sets) and apiserver/pkg/cel/library (lists, regex,
quantity, semver); times, addresses, formats and optional values have modules of their own. Not supported, and refused
at compilation: images and the authorizer.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from itertools import pairwise
from operator import attrgetter
from typing import Any

from podium.api.cel import moments, named_formats, network
from podium.api.cel.overloads import (
    DYN,
    Functions,
    Table,
    checked,
    checked_unsigned,
    fill_operators,
    fill_optionals,
    of_product,
    tenth,
    traversal,
)
from podium.api.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NANO,
    EvaluationError,
    Quantity,
    Semver,
    UInt,
    Value,
    equal,
    number,
    pattern_of,
    reads,
    size_of,
    type_name,
)

QUANTITY, SEMVER = "kubernetes.Quantity", "kubernetes.Semver"
_NUMBERS = ("int", "uint", "double")


def _integer(value: Value) -> int:
    """Return the integer part of a number; one that fits no type for infinities and NaN."""
    return MAX_UINT + 1 if isinstance(value, float) and not math.isfinite(value) else int(number(value))


def _read(text: str, to: Callable[[str], Any], pattern: str) -> Any:
    if len(text) > 400 or not re.fullmatch(pattern, text, re.ASCII):
        raise EvaluationError(f"type conversion error from 'string' to '{to.__name__}'")
    return to(text)


def _shown(value: Value) -> str:
    value = value.value if isinstance(value, UInt) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    return str(value)


def _double(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise EvaluationError("double overflow") from None


def _conversions(table: Table) -> None:
    for kind in _NUMBERS:
        table.function("int", (kind,), "int", lambda a: checked(_integer(a)))
        table.function("uint", (kind,), "uint", lambda a: checked_unsigned(_integer(a)))
        table.function("double", (kind,), "double", lambda a: _double(number(a)))
    table.function("int", ("string",), "int", lambda a: checked(_read(a, int, r"[+-]?\d+")))
    table.function("uint", ("string",), "uint", lambda a: checked_unsigned(_read(a, int, r"\d+")))
    table.function("double", ("string",), "double", lambda a: _read(a, float, r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"))
    for kind in ("bool", "string", "bytes", *_NUMBERS):
        table.function("string", (kind,), "string", _shown, traversal(0))
    table.function("bytes", ("string",), "bytes", lambda a: a.encode(), traversal(0))
    table.function("bool", ("bool",), "bool", lambda a: a)
    table.function("bool", ("string",), "bool", _truth)
    table.function("dyn", (DYN,), DYN, lambda a: a)
    table.function("type", (DYN,), "string", type_name)


def _truth(text: str) -> bool:
    if text in ("1", "t", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "false", "FALSE", "False"):
        return False
    raise EvaluationError("type conversion error from 'string' to 'bool'")


def _of_match(*args: Value) -> int:
    return tenth(1 + size_of(args[0])) * -(-size_of(args[1]) // 4)


def _texts(table: Table) -> None:
    one, two = ("string", "string"), ("string", "string", "string")
    table.method("contains", one, "bool", lambda a, b: b in a, of_product)
    table.method("startsWith", one, "bool", lambda a, b: a.startswith(b), traversal(1))
    table.method("endsWith", one, "bool", lambda a, b: a.endswith(b), traversal(1))
    for add in table:
        add("matches", one, "bool", lambda a, b: pattern_of(b).search(a) is not None, _of_match)
    escapes = str.maketrans({"~": "~0", "/": "~1"})
    table.function("jsonpatch.escapeKey", ("string",), "string", lambda a: a.translate(escapes), traversal(0))
    table.method("find", one, "string", _first_match, _of_match)
    table.method("findAll", one, "list", lambda a, b: tuple(match[0] for match in pattern_of(b).finditer(a)), _of_match)
    table.method("charAt", ("string", "int"), "string", _char_at)
    table.method("indexOf", one, "int", lambda a, b: a.find(b), of_product)
    table.method("lastIndexOf", one, "int", lambda a, b: a.rfind(b), of_product)
    table.method("lowerAscii", ("string",), "string", lambda a: _in_case(a, str.lower), traversal(0))
    table.method("upperAscii", ("string",), "string", lambda a: _in_case(a, str.upper), traversal(0))
    table.method("trim", ("string",), "string", lambda a: a.strip(), traversal(0))
    # The cost limit also bounds the result: the size of each argument is charged before the call.
    table.method("replace", two, "string", str.replace, _of_replacement)
    table.method("split", one, "list", lambda a, b: tuple(a.split(b) if b else a), traversal(0))
    table.method("substring", ("string", "int"), "string", lambda a, b: _part(a, b, len(a)), traversal(0))
    table.method("substring", ("string", "int", "int"), "string", _part, traversal(0))
    table.method("join", ("list",), "string", lambda a: _joined(a, ""), _of_join)
    table.method("join", ("list", "string"), "string", _joined, _of_join)
    table.method("reverse", ("string",), "string", lambda a: a[::-1], traversal(0))


def _first_match(text: str, pattern: str) -> str:
    match = pattern_of(pattern).search(text)
    return str(match[0]) if match else ""


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _in_case(text: str, change: Callable[[str], str]) -> str:
    return "".join(change(character) if character.isascii() else character for character in text)


def _of_replacement(*args: Value) -> int:
    text, old, new = (size_of(arg) for arg in args)
    return tenth(text + (text // max(old, 1) + 1) * new)


def _part(text: str, start: int, end: int) -> str:
    if not 0 <= start <= end <= len(text):
        raise EvaluationError(f"index out of range: {start if not 0 <= start <= len(text) else end}")
    return text[start:end]


def _joined(items: tuple[Value, ...], by: str) -> str:
    if not all(isinstance(item, str) for item in items):
        raise EvaluationError("join: no such overload")
    return by.join(items)


def _of_join(items: tuple[Value, ...], by: str = "") -> int:
    return tenth(sum(size_of(item) for item in items) + len(items) * len(by))


def _collections(table: Table) -> None:
    for kind in ("string", "bytes", "list", "map"):
        for add in table:
            add("size", (kind,), "int", len)
    table.method("isSorted", ("list",), "bool", _is_sorted, _of_items)
    table.method("sum", ("list",), DYN, _sum, _of_items)
    table.method("min", ("list",), DYN, lambda items: _extreme(items, min), _of_items)
    table.method("max", ("list",), DYN, lambda items: _extreme(items, max), _of_items)
    for name, step in (("indexOf", 1), ("lastIndexOf", -1)):
        table.method(name, ("list", DYN), "int", lambda items, item, step=step: _place(items, item, step), _of_items)
    pair = ("list", "list")
    table.function("sets.contains", pair, "bool", lambda a, b: all(_has(a, item) for item in b), _of_pairs)
    table.function("sets.intersects", pair, "bool", lambda a, b: any(_has(a, item) for item in b), _of_pairs)
    table.function("sets.equivalent", pair, "bool", _equivalent, _of_pairs)


def _of_items(items: tuple[Value, ...], *_: Value) -> int:
    return max(len(items), 1)


def _of_pairs(*args: Value) -> int:
    return max(len(args[0]) * len(args[1]), 1)


def _comparable(items: tuple[Value, ...]) -> list[Any]:
    kinds = {type_name(item) for item in items}
    if len(kinds) > 1 or kinds & {"list", "map", "null_type"}:
        raise EvaluationError("no such overload")
    return [number(item) for item in items]


def _is_sorted(items: tuple[Value, ...]) -> bool:
    return all(left <= right for left, right in pairwise(_comparable(items)))


def _extreme(items: tuple[Value, ...], pick: Callable[..., int]) -> Value:
    if not items:
        raise EvaluationError(f"{pick.__name__} called on empty list")
    order = _comparable(items)
    return items[pick(range(len(items)), key=order.__getitem__)]


def _sum(items: tuple[Value, ...]) -> Value:
    kinds = {type_name(item) for item in items}
    if len(kinds) > 1 or not kinds <= set(_NUMBERS):
        raise EvaluationError("no such overload")
    total = sum(number(item) for item in items)
    if kinds == {"uint"}:
        return checked_unsigned(_integer(total))
    return total if kinds == {"double"} else checked(_integer(total))


def _place(items: tuple[Value, ...], wanted: Value, step: int) -> int:
    return next((place for place in range(len(items))[::step] if equal(items[place], wanted)), -1)


def _has(items: tuple[Value, ...], wanted: Value) -> bool:
    return any(equal(item, wanted) for item in items)


def _equivalent(left: tuple[Value, ...], right: tuple[Value, ...]) -> bool:
    return all(_has(left, item) for item in right) and all(_has(right, item) for item in left)


def _quantities(table: Table) -> None:
    one, both = (QUANTITY,), (QUANTITY, QUANTITY)
    table.function("quantity", ("string",), QUANTITY, Quantity.of, traversal(0))
    table.function("isQuantity", ("string",), "bool", lambda a: reads(Quantity.of, a), traversal(0))
    table.method("sign", one, "int", lambda a: (a.nano > 0) - (a.nano < 0))
    table.method("isInteger", one, "bool", _fits)
    table.method("asInteger", one, "int", _as_integer)
    table.method("asApproximateFloat", one, "double", lambda a: a.nano / NANO)
    _comparisons(table, QUANTITY)
    for name, sign in (("add", 1), ("sub", -1)):
        table.method(name, both, QUANTITY, lambda a, b, s=sign: Quantity(a.nano + s * b.nano))
        table.method(name, (QUANTITY, "int"), QUANTITY, lambda a, b, s=sign: Quantity(a.nano + s * b * NANO))


def _fits(amount: Quantity) -> bool:
    return amount.nano % NANO == 0 and MIN_INT <= amount.nano // NANO <= MAX_INT


def _as_integer(amount: Quantity) -> int:
    if not _fits(amount):
        raise EvaluationError("cannot convert value to integer")
    return amount.nano // NANO


def _versions(table: Table) -> None:
    table.function("semver", ("string",), SEMVER, Semver.of, traversal(0))
    table.function("semver", ("string", "bool"), SEMVER, _lenient, traversal(0))
    table.function("isSemver", ("string",), "bool", lambda a: reads(Semver.of, a), traversal(0))
    table.function("isSemver", ("string", "bool"), "bool", lambda a, b: reads(_lenient, a, b), traversal(0))
    for part in ("major", "minor", "patch"):
        table.method(part, (SEMVER,), "int", attrgetter(part))
    _comparisons(table, SEMVER)


def _comparisons(table: Table, kind: str) -> None:
    table.method("isGreaterThan", (kind, kind), "bool", operator.gt)
    table.method("isLessThan", (kind, kind), "bool", operator.lt)
    table.method("compareTo", (kind, kind), "int", lambda a, b: (a > b) - (a < b))


def _lenient(text: str, normalize: bool) -> Semver:
    """Return a version; with ``normalize`` also from a text such as v1.2 or 01.2.3 (blang/semver's tolerant parser)."""
    if not normalize:
        return Semver.of(text)
    head, *rest = re.split(r"(?=[-+])", text.removeprefix("v"), maxsplit=1)
    parts = head.split(".")
    if len(parts) < 3 and rest:
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    parts = [part.lstrip("0") or "0" if part.isdigit() else part for part in parts]
    return Semver.of(".".join([*parts, *["0"] * (3 - len(parts))]) + "".join(rest))


FUNCTIONS, METHODS = Table(Functions(), Functions())
"""The global functions, including operators, and the methods."""

for _fill in (
    *(fill_operators, _conversions, _texts, _collections, _quantities, _versions),
    *(fill_optionals, moments.fill, network.fill, named_formats.fill),
):
    _fill(Table(FUNCTIONS, METHODS))
