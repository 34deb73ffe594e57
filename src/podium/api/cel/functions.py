"""The functions and methods of expressions: CEL's own, those for strings and lists, quantities, versions and formats.

Source: cel-spec (standard definitions), cel-go ext (strings, sets, formatting) and apiserver/pkg/cel/library (lists,
regex, quantity, semver, format); times, addresses, optional values and the authorizer have modules of their own. Not
supported, and refused at compilation: images.
"""

from __future__ import annotations

import base64
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any, ClassVar

from podium.api.cel import access, types, values
from podium.api.cel.types import Timestamp, Url
from podium.api.cel.values import (
    DYN,
    NONE,
    NUMBERS,
    OPTIONAL,
    EvaluationError,
    Functions,
    FunctionTable,
    Optional,
    Quantity,
    Semver,
    UInt,
    Value,
    checked,
    checked_unsigned,
    fill_operators,
    fill_optionals,
    is_in,
    of_product,
    tenth,
    traversal,
)
from podium.api.names import label_key_problem, label_name_problem, label_value_problem, subdomain_problem

QUANTITY, SEMVER = "kubernetes.Quantity", "kubernetes.Semver"


def _integer(value: Value) -> int:
    """Return the integer part of a number; one that fits no type for infinities and NaN."""
    return values.MAX_UINT + 1 if isinstance(value, float) and not math.isfinite(value) else int(values.number(value))


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


def _conversions(table: FunctionTable) -> None:
    for kind in NUMBERS:
        table.function("int", (kind,), "int", lambda a: checked(_integer(a)))
        table.function("uint", (kind,), "uint", lambda a: checked_unsigned(_integer(a)))
        table.function("double", (kind,), "double", lambda a: _double(values.number(a)))
    table.function("int", ("string",), "int", lambda a: checked(_read(a, int, r"[+-]?\d+")))
    table.function("uint", ("string",), "uint", lambda a: checked_unsigned(_read(a, int, r"\d+")))
    table.function("double", ("string",), "double", lambda a: _read(a, float, r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"))
    for kind in ("bool", "string", "bytes", *NUMBERS):
        table.function("string", (kind,), "string", _shown, traversal(0))
    table.function("bytes", ("string",), "bytes", lambda a: a.encode(), traversal(0))
    table.function("bool", ("bool",), "bool", lambda a: a)
    table.function("bool", ("string",), "bool", _truth)
    table.function("dyn", (DYN,), DYN, lambda a: a)
    table.function("type", (DYN,), "type", lambda a: values.TypeValue(values.type_name(a)))


def _truth(text: str) -> bool:
    if text in ("1", "t", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "false", "FALSE", "False"):
        return False
    raise EvaluationError("type conversion error from 'string' to 'bool'")


def _of_match(*args: Value) -> int:
    return tenth(1 + values.size_of(args[0])) * -(-values.size_of(args[1]) // 4)


def _texts(table: FunctionTable) -> None:
    one, two = ("string", "string"), ("string", "string", "string")
    table.method("contains", one, "bool", lambda a, b: b in a, of_product)
    table.method("startsWith", one, "bool", lambda a, b: a.startswith(b), traversal(1))
    table.method("endsWith", one, "bool", lambda a, b: a.endswith(b), traversal(1))
    for add in table:
        add("matches", one, "bool", lambda a, b: values.pattern_of(b).search(a) is not None, _of_match)
    escapes = str.maketrans({"~": "~0", "/": "~1"})
    table.function("jsonpatch.escapeKey", ("string",), "string", lambda a: a.translate(escapes), traversal(0))
    table.method("find", one, "string", _first_match, _of_match)
    table.method(
        "findAll", one, "list", lambda a, b: tuple(match[0] for match in values.pattern_of(b).finditer(a)), _of_match
    )
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
    match = values.pattern_of(pattern).search(text)
    return str(match[0]) if match else ""


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _in_case(text: str, change: Callable[[str], str]) -> str:
    return "".join(change(character) if character.isascii() else character for character in text)


def _of_replacement(*args: Value) -> int:
    text, old, new = (values.size_of(arg) for arg in args)
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
    return tenth(sum(values.size_of(item) for item in items) + len(items) * len(by))


def _collections(table: FunctionTable) -> None:
    for kind in ("string", "bytes", "list", "map"):
        for add in table:
            add("size", (kind,), "int", len)
    table.method("isSorted", ("list",), "bool", lambda a: all(x <= y for x, y in pairwise(_comparable(a))), _of_items)
    table.method("sum", ("list",), DYN, _sum, _of_items)
    table.method("min", ("list",), DYN, lambda items: _extreme(items, min), _of_items)
    table.method("max", ("list",), DYN, lambda items: _extreme(items, max), _of_items)
    for name, step in (("indexOf", 1), ("lastIndexOf", -1)):
        table.method(name, ("list", DYN), "int", lambda items, item, step=step: _place(items, item, step), _of_items)
    pair = ("list", "list")
    table.function("sets.contains", pair, "bool", lambda a, b: all(is_in(item, a) for item in b), _of_pairs)
    table.function("sets.intersects", pair, "bool", lambda a, b: any(is_in(item, a) for item in b), _of_pairs)
    table.function("sets.equivalent", pair, "bool", _equivalent, _of_pairs)


def _of_items(items: tuple[Value, ...], *_: Value) -> int:
    return max(len(items), 1)


def _of_pairs(*args: Value) -> int:
    return max(len(args[0]) * len(args[1]), 1)


def _comparable(items: tuple[Value, ...]) -> list[Any]:
    kinds = {values.type_name(item) for item in items}
    if len(kinds) > 1 or kinds & {"list", "map", "null_type"}:
        raise EvaluationError("no such overload")
    return [values.number(item) for item in items]


def _extreme(items: tuple[Value, ...], pick: Callable[..., int]) -> Value:
    if not items:
        raise EvaluationError(f"{pick.__name__} called on empty list")
    order = _comparable(items)
    return items[pick(range(len(items)), key=order.__getitem__)]


def _sum(items: tuple[Value, ...]) -> Value:
    kinds = {values.type_name(item) for item in items}
    if len(kinds) > 1 or not kinds <= set(NUMBERS):
        raise EvaluationError("no such overload")
    total = sum(values.number(item) for item in items)
    if kinds == {"uint"}:
        return checked_unsigned(_integer(total))
    return total if kinds == {"double"} else checked(_integer(total))


def _place(items: tuple[Value, ...], wanted: Value, step: int) -> int:
    return next((place for place in range(len(items))[::step] if values.equal(items[place], wanted)), -1)


def _equivalent(left: tuple[Value, ...], right: tuple[Value, ...]) -> bool:
    return all(is_in(item, left) for item in right) and all(is_in(item, right) for item in left)


def _quantities(table: FunctionTable) -> None:
    one, both = (QUANTITY,), (QUANTITY, QUANTITY)
    table.function("quantity", ("string",), QUANTITY, Quantity.of, traversal(0))
    table.function("isQuantity", ("string",), "bool", lambda a: values.reads(Quantity.of, a), traversal(0))
    table.method("sign", one, "int", lambda a: (a.nano > 0) - (a.nano < 0))
    table.method("isInteger", one, "bool", _fits)
    table.method("asInteger", one, "int", _as_integer)
    table.method("asApproximateFloat", one, "double", lambda a: a.nano / values.NANO)
    _comparisons(table, QUANTITY)
    for name, sign in (("add", 1), ("sub", -1)):
        table.method(name, both, QUANTITY, lambda a, b, s=sign: Quantity(a.nano + s * b.nano))
        table.method(name, (QUANTITY, "int"), QUANTITY, lambda a, b, s=sign: Quantity(a.nano + s * b * values.NANO))


def _fits(amount: Quantity) -> bool:
    return amount.nano % values.NANO == 0 and values.MIN_INT <= amount.nano // values.NANO <= values.MAX_INT


def _as_integer(amount: Quantity) -> int:
    if not _fits(amount):
        raise EvaluationError("cannot convert value to integer")
    return amount.nano // values.NANO


def _versions(table: FunctionTable) -> None:
    table.function("semver", ("string",), SEMVER, Semver.of, traversal(0))
    table.function("semver", ("string", "bool"), SEMVER, _lenient, traversal(0))
    table.function("isSemver", ("string",), "bool", lambda a: values.reads(Semver.of, a), traversal(0))
    table.function("isSemver", ("string", "bool"), "bool", lambda a, b: values.reads(_lenient, a, b), traversal(0))
    for part in ("major", "minor", "patch"):
        table.method(part, (SEMVER,), "int", attrgetter(part))
    _comparisons(table, SEMVER)


def _comparisons(table: FunctionTable, kind: str) -> None:
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


FORMAT = "kubernetes.NamedFormat"
UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_DIRECTIVE = re.compile(r"%(?:%|(?:\.(\d{1,3}))?([a-zA-Z]))", re.ASCII)
_MOST_WRITTEN = 100_000


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format: a function that returns the problem of a text, None if it is valid."""

    cel_type: ClassVar[str] = FORMAT
    name: str
    problem_of: Callable[[str], str | None]

    def validate(self, text: str) -> Optional:
        """Return the problems of a text, or none."""
        problem = self.problem_of(text)
        return NONE if problem is None else Optional((problem,))


def _prefix(problem_of: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """Return a function for the problem of a name prefix, which may end in a dash."""
    return lambda text: problem_of(f"{text[:-1]}a" if text.endswith("-") else text)


def _label_1035_problem(text: str) -> str | None:
    if len(text) <= 63 and _LABEL_1035.fullmatch(text):
        return None
    return (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character"
    )


def _readable(problem: str, read: Callable[[str], object]) -> Callable[[str], str | None]:
    return lambda text: None if values.reads(read, text) else problem


_FORMATS: Mapping[str, NamedFormat] = {
    name: NamedFormat(name, problem_of)
    for name, problem_of in (
        ("byte", _readable("invalid base64", lambda text: base64.b64decode(text, validate=True))),
        ("date", _readable("invalid date", lambda text: Timestamp.of(f"{text}T00:00:00Z"))),
        ("datetime", _readable("invalid datetime", Timestamp.of)),
        ("dns1035Label", _label_1035_problem),
        ("dns1035LabelPrefix", _prefix(_label_1035_problem)),
        ("dns1123Label", label_name_problem),
        ("dns1123LabelPrefix", _prefix(label_name_problem)),
        ("dns1123Subdomain", subdomain_problem),
        ("dns1123SubdomainPrefix", _prefix(subdomain_problem)),
        ("labelValue", label_value_problem),
        ("qualifiedName", label_key_problem),
        ("uri", _readable("invalid URI", Url.of)),
        ("uuid", lambda text: None if UUID.fullmatch(text) else "does not match the UUID format"),
    )
}


def _formats(table: FunctionTable) -> None:
    table.function("format.named", ("string",), OPTIONAL, lambda a: Optional(_FORMATS[a]) if a in _FORMATS else NONE)
    for name, found in _FORMATS.items():
        table.function(f"format.{name}", (), FORMAT, lambda found=found: found)
    table.method("validate", (FORMAT, "string"), OPTIONAL, lambda a, b: a.validate(b), traversal(1))
    table.method("format", ("string", "list"), "string", _formatted, _of_formatting)
    table.function("strings.quote", ("string",), "string", _quoted, traversal(0))


def _of_formatting(text: str, items: tuple[Value, ...]) -> int:
    return tenth(values.size_of(text) + sum(values.size_of(item) for item in items)) + 1


def _formatted(text: str, items: tuple[Value, ...]) -> str:
    """Return the text with an item for each directive. Raises EvaluationError for missing or mismatched items."""
    parts: list[str] = []
    position = used = 0
    for match in _DIRECTIVE.finditer(text):
        parts.append(_literal(text[position : match.start()]))
        position = match.end()
        if match[0] == "%%":
            parts.append("%")
            continue
        if used >= len(items):
            raise EvaluationError(f"index {used} out of range")
        parts.append(_directive(match[2], match[1], items[used]))
        used += 1
    parts.append(_literal(text[position:]))
    return "".join(parts)


def _literal(text: str) -> str:
    if "%" in text:
        raise EvaluationError(f"could not parse formatting clause: {text[:40]!r}")
    return text


def _directive(kind: str, precision: str | None, value: Value) -> str:
    if kind == "s":
        return _formatted_value(value)
    digits = 6 if precision is None else int(precision)
    found = values.type_name(value)
    if kind == "d" and found in ("int", "uint"):
        return str(values.number(value))
    if kind in ("f", "e") and found in ("double", "int", "uint"):
        return f"{float(values.number(value)):.{digits}{kind}}"
    if kind in ("b", "o", "x", "X") and found in ("int", "uint", "bool"):
        return format(int(value) if isinstance(value, bool) else int(values.number(value)), kind)
    if kind in ("x", "X") and found in ("string", "bytes"):
        written = (value.encode() if isinstance(value, str) else value).hex()
        return written.upper() if kind == "X" else str(written)
    raise EvaluationError(f"error during formatting: %{kind} can not be used on {found}")


def _formatted_value(value: Value) -> str:
    """Return a value in the format %s: strings unchanged, lists and maps with their content."""
    if isinstance(value, tuple):
        return _bounded(f"[{', '.join(map(_formatted_value, value))}]")
    if isinstance(value, dict):
        entries = sorted((_formatted_value(key), _formatted_value(inner)) for key, inner in value.items())
        return _bounded(f"{{{', '.join(f'{key}: {inner}' for key, inner in entries)}}}")
    write = _WRITERS.get(type(value))
    return str(getattr(value, "value", value)) if write is None else write(value)


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    bytes: lambda value: value.decode(errors="replace"),
    float: lambda value: f"{value:.6f}".rstrip("0").rstrip(".") if math.isfinite(value) else str(value),
    type(None): lambda _: "null",
}


def _bounded(text: str) -> str:
    if len(text) > _MOST_WRITTEN:
        raise EvaluationError("error during formatting: the text is too long")
    return text


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def _quoted(text: str) -> str:
    inner = "".join(_ESCAPES.get(letter, f"\\{letter}" if letter in '"\\' else letter) for letter in text)
    return f'"{inner}"'


FUNCTIONS, METHODS = FunctionTable(Functions(), Functions())
"""The global functions, including operators, and the methods."""

for _fill in (
    *(fill_operators, _conversions, _texts, _collections, _quantities, _versions),
    *(_formats, fill_optionals, types.fill_times, types.fill_addresses, access.fill),
):
    _fill(FunctionTable(FUNCTIONS, METHODS))
