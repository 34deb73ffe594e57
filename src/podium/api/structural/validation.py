"""Validation of an object by the schema of its kind, with the messages of kube-apiserver.

Source: apiextensions-apiserver (pkg/apiserver/validation, pkg/apiserver/schema/listtype, schema/cel/validation.go) and
kube-openapi (pkg/validation/validate).
"""

from __future__ import annotations

import base64
import ipaddress
import json
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec

from podium.api.cel.compiler import Variables
from podium.api.cel.functions import UUID
from podium.api.cel.values import pattern_of, reads
from podium.api.errors import field_path, shown
from podium.api.meta import Raw
from podium.api.structural.structural import COST_LIMIT, TYPE_FIELDS, Structural, cel_value_at, read_structural
from podium.api.times import parse_duration, parse_time
from podium.api.validation import findings
from podium.api.validation.findings import MAX_FINDINGS, Finding

_Test = Callable[[Any], bool]
_Path = str | tuple[Any, str | int]
"""A path as text, or the path of a value and the name or index of the part: most paths are never shown."""

_TYPES: Mapping[str, _Test] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


_BLOCKING = {f"FieldValue{cause}" for cause in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")}
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


def find_problems(raw: Raw, node: Structural, old: Raw | None = None) -> list[Finding]:
    """Return the problems of an object, which replaces `old` in an update: those of values that it changes."""
    check = _check_of(node)
    found: list[Finding] = []
    check.find({name: value for name, value in raw.items() if name not in TYPE_FIELDS}, old, "", found)
    if check._has_rules and any(finding.cause in _BLOCKING for finding in found):
        found.append(Finding("<nil>", "FieldValueInvalid", f'Invalid value: "null": {_UNCHECKED}'))
    else:
        check.find_broken(raw, old, "", Variables({}, COST_LIMIT), found)
    return found[:MAX_FINDINGS]


class _Check:
    """The compiled checks of one location of a schema."""

    def __init__(self, node: Structural) -> None:
        schema = node.schema
        self._node = node
        self._is_typed = _TYPES.get(node.type)
        if node.is_number_or_text:
            self._is_typed = lambda value: isinstance(value, int | str) and not isinstance(value, bool)
        self._limits = tuple(_limits(schema, _LIMITS))
        self._junctors = tuple(_limits(schema, _JUNCTORS))
        self._required = tuple(schema.get("required", ()))
        self._fields = {name: _Check(inner) for name, inner in node.properties.items()}
        self._values = None if node.values is None else _Check(node.values)
        self._items = None if node.items is None else _Check(node.items)
        below = (*self._fields.values(), self._values, self._items)
        self._has_rules: bool = bool(node.rules) or any(check is not None and check._has_rules for check in below)

    def find(self, value: Any, old: Any, path: _Path, found: list[Finding]) -> None:
        """Append the violations of types and limits, unless the value equals `old` (None for no old value)."""
        node, known = self._node, len(found)
        if value is None and node.is_nullable:
            return
        if self._is_typed is not None and not self._is_typed(value):
            place, given = _text(path), _type_name(value)
            wanted = "integer,string" if node.is_number_or_text else node.type
            detail = f'{place.removeprefix(".")} in body must be of type {wanted}: "{given}"'
            found.append(Finding(place, "FieldValueTypeInvalid", f'Invalid value: "{given}": {detail}'))
        else:
            _exceed(self._limits, value, path, found)
            if isinstance(value, dict):
                self._find_in_fields(value, old, path, found)
            elif isinstance(value, list) and self._items is not None:
                for index, (item, was) in enumerate(_with_old(value, old, node)):
                    if len(found) < MAX_FINDINGS:
                        self._items.find(item, was, (path, index), found)
                found += _repeated(value, node, path)
            _exceed(self._junctors, value, path, found)
        if len(found) > known and old is not None and _identity(value) == _identity(old):
            del found[known:]

    def _find_in_fields(self, value: Raw, old: Any, path: _Path, found: list[Finding]) -> None:
        for name in self._required:
            if name not in value and (path or name not in TYPE_FIELDS):
                found.append(findings.required(_text((path, name))))
        if self._node.is_embedded:
            found += [findings.required(_text((path, name))) for name in ("apiVersion", "kind") if not value.get(name)]
        before = old if isinstance(old, dict) and not self._node.is_atomic_map else {}
        for key, inner in value.items():
            check = self._fields.get(key, self._values)
            if check is not None and len(found) < MAX_FINDINGS:
                check.find(inner, before.get(key), (path, key), found)

    def find_broken(self, value: Any, old: Any, path: _Path, spent: Variables, found: list[Finding]) -> None:
        """Append the CEL rules that the value breaks; `old` None means that there is no old value."""
        node = self._node
        if not self._has_rules or value is None or len(found) >= MAX_FINDINGS:
            return
        if node.rules:
            now, before = cel_value_at(value, node), None if old is None else cel_value_at(old, node)
            for rule in node.rules:
                problem = rule.violation(now, before, spent)
                # Only transition rules also apply to a value that does not change.
                if problem and (rule.uses_old or old is None or _identity(value) != _identity(old)):
                    word = _WORDS.get(rule.reason, 'Invalid value: "{}"').format(_type_name(value))
                    found.append(Finding(f"{_text(path)}{rule.place}", rule.reason, f"{word}: {problem}"))
        if isinstance(value, dict):
            for key, inner in value.items():
                check = self._fields.get(key, self._values)
                if check is not None and check._has_rules:
                    was = old.get(key) if isinstance(old, dict) and not node.is_atomic_map else None
                    place = (path, key) if key in self._fields else f"{_text(path)}[{key}]"
                    check.find_broken(inner, was, place, spent, found)
        elif isinstance(value, list) and self._items is not None and self._items._has_rules:
            for index, (item, was) in enumerate(_with_old(value, old, node)):
                self._items.find_broken(item, was, (path, index), spent, found)


_check_of = lru_cache(maxsize=256)(_Check)


def _exceed(limits: tuple[_Limit, ...], value: Any, path: _Path, found: list[Finding]) -> None:
    found += [limit.finding(_text(path), value) for limit in limits if not limit.holds(value)]


def _text(path: _Path) -> str:
    if isinstance(path, str):
        return path
    whole, part = path
    return f"{_text(whole)}[{part}]" if isinstance(part, int) else field_path(_text(whole), part)


_WORDS = {
    "FieldValueDuplicate": 'Duplicate value: "{}"',
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
}


def _type_name(value: Any) -> str:
    return next((name for name, is_of in _TYPES.items() if is_of(value)), "null")


_NUMBERS = (int, float)


class _Limit(NamedTuple):
    """A test of a value, and the finding for a path and a value that fails it."""

    holds: _Test
    finding: Callable[[str, Any], Finding]


_Make = Callable[[Any, Raw], _Limit]
"""Returns the limit that a keyword of a schema sets: its value there, and the schema."""


def _limits(schema: Raw, kinds: Mapping[str, _Make]) -> Iterator[_Limit]:
    """Yield the limits of a schema, in the order of `kinds`."""
    for name, make in kinds.items():
        if schema.get(name) is not None:
            yield make(schema[name], schema)


def _body(detail: str) -> Callable[[str, Any], Finding]:
    """Return the finding for a value; of a list or an object it states the length."""
    return lambda path, value: findings.invalid(
        path, len(value) if isinstance(value, dict | list) else value, f"{path.removeprefix('.')} in body {detail}"
    )


def _keyword(
    types: tuple[type, ...], holds: Callable[[Any, Any], bool], finding: str | Callable[[str, Any, Any], Finding]
) -> _Make:
    """Return the maker of a limit for values of some types (all for ()); a text is the detail of its finding."""

    def make(limit: Any, schema: Raw) -> _Limit:
        def found(path: str, value: Any) -> Finding:
            return finding(path, value, limit) if callable(finding) else _body(finding.format(limit))(path, value)

        return _Limit(lambda value: (types and type(value) not in types) or holds(value, limit), found)

    return make


def _format(format_: Any, schema: Raw) -> _Limit:
    is_of: _Test = _FORMATS.get(format_, lambda text: True)
    end = {"int32": 2**31, "int64": 2**63}.get(format_)

    def holds(value: Any) -> bool:
        if isinstance(value, str):
            return is_of(value)
        return end is None or not isinstance(value, int) or -end <= value < end

    return _Limit(holds, lambda path, value: _body(f"must be of type {format_}: {shown(str(value))}")(path, value))


def _bound(exclusive: str, word: str, beyond: Callable[[Any, Any], bool]) -> _Make:
    """Return the maker of a limit of numbers; `beyond` says whether a number violates the bound."""

    def make(bound: Any, schema: Raw) -> _Limit:
        excludes = bool(schema.get(exclusive))

        def holds(value: Any, bound: Any) -> bool:
            return not (beyond(value, bound) or (excludes and value == bound))

        detail = f"should be {word} than {'' if excludes else 'or equal to '}{{}}"
        return _keyword(_NUMBERS, holds, detail)(bound, schema)

    return make


def _is_multiple(value: int | float, step: int | float) -> bool:
    try:
        return not step or not value % step
    except OverflowError:
        # The integer exceeds the range of doubles, so its remainder is not computed.
        return False


_LIMITS: Mapping[str, _Make] = {
    "enum": _keyword(
        (),
        lambda value, known: any(isinstance(value, bool) == isinstance(one, bool) and value == one for one in known),
        findings.unsupported,
    ),
    "maxLength": _keyword(
        (str,), lambda text, most: len(text) <= most, lambda path, _, most: findings.too_long(path, most)
    ),
    "minLength": _keyword((str,), lambda text, least: len(text) >= least, "should be at least {} chars long"),
    "pattern": _keyword((str,), lambda text, pattern: matches(pattern, text), "should match '{}'"),
    "format": _format,
    "minimum": _bound("exclusiveMinimum", "greater", operator.lt),
    "maximum": _bound("exclusiveMaximum", "less", operator.gt),
    "multipleOf": _keyword(_NUMBERS, _is_multiple, "should be a multiple of {}"),
    "minItems": _keyword((list,), lambda items, least: len(items) >= least, "should have at least {} items"),
    "maxItems": _keyword((list,), lambda items, most: len(items) <= most, findings.too_many),
    "minProperties": _keyword((dict,), lambda some, least: len(some) >= least, "should have at least {} properties"),
    "maxProperties": _keyword((dict,), lambda some, most: len(some) <= most, findings.too_many),
}
"""The keywords that limit values, in the order of their findings."""


def _test_of(part: Raw) -> _Test:
    """Return the test of a subschema, which has no types except in its properties."""
    check = _Check(read_structural(part))

    def fits(value: Any) -> bool:
        found: list[Finding] = []
        check.find(value, None, ".", found)
        return not found

    return fits


def _combined(is_right: Callable[[int, int], bool], detail: str) -> _Make:
    """Return the maker of a limit by one or several subschemas, from how many of them fit, and how many there are."""

    def make(parts: Any, schema: Raw) -> _Limit:
        tests = [_test_of(part) for part in (parts if isinstance(parts, list) else [parts])]

        def fitting(value: Any) -> int:
            return sum(fits(value) for fits in tests)

        def finding(path: str, value: Any) -> Finding:
            number = fitting(value)
            message = detail.format(f"{number} valid alternatives" if number else "none valid")
            return findings.invalid(path, value, f"{shown(path.removeprefix('.'))} must {message}")

        return _Limit(lambda value: not tests or is_right(fitting(value), len(tests)), finding)

    return make


_JUNCTORS: Mapping[str, _Make] = {
    "allOf": _combined(operator.eq, "validate all the schemas (allOf)"),
    "anyOf": _combined(lambda fitting, _: fitting > 0, "validate at least one schema (anyOf)"),
    "oneOf": _combined(lambda fitting, _: fitting == 1, "validate one and only one schema (oneOf). Found {}"),
    "not": _combined(lambda fitting, _: not fitting, "not validate the schema (not)"),
}


_ENCODER = msgspec.json.Encoder(order="deterministic")


def _repeated(value: list[Any], node: Structural, path: _Path) -> Iterator[Finding]:
    """Yield duplicate items of a list whose items must be unique."""
    if node.list_type == "atomic":
        return
    known: set[bytes] = set()
    for index, item in enumerate(value):
        identity = {key: item.get(key) for key in node.list_keys} if isinstance(item, dict) and node.list_keys else item
        written = _identity(identity)
        if written in known:
            shown_ = json.dumps(identity, sort_keys=True) if isinstance(identity, dict) else identity
            yield findings.duplicate(f"{_text(path)}[{index}]", shown_)
        known.add(written)


def _identity(value: Any) -> bytes:
    """Return bytes that are equal for equal values alone."""
    try:
        return _ENCODER.encode(value)
    except (OverflowError, UnicodeEncodeError):
        return json.dumps(value, sort_keys=True).encode()


def _with_old(value: list[Any], old: Any, node: Structural) -> Iterator[tuple[Any, Any]]:
    """Yield the items of a list, each with the old item of its keys, None if there is none."""
    is_keyed = node.list_type == "map" and isinstance(old, list)
    known = {_keys_of(item, node): item for item in old} if is_keyed else {}
    for item in value:
        yield item, known.get(_keys_of(item, node)) if known else None


def _keys_of(item: Any, node: Structural) -> bytes:
    return _identity([item.get(key) for key in node.list_keys] if isinstance(item, dict) else None)


def is_pattern(pattern: str) -> bool:
    """Return whether it is a valid regular expression."""
    return reads(pattern_of, pattern)


def matches(pattern: str, text: str) -> bool:
    """Return whether a part of the text matches; an invalid expression matches nothing."""
    return is_pattern(pattern) and pattern_of(pattern).search(text) is not None


_DATE = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$"
_EMAIL = r"^[^@\s]+@[^@\s]+$"
_HOSTNAME = r"^([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*\.?$"
_URI = r"^[a-zA-Z][a-zA-Z0-9+.-]*:\S*$|^/\S*$"
_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "byte": partial(reads, lambda text: base64.b64decode(text, validate=True)),
    "cidr": partial(reads, lambda text: ipaddress.ip_network(text, strict=False)),
    "date": lambda text: matches(_DATE, text),
    "date-time": partial(reads, parse_time),
    "duration": partial(reads, parse_duration),
    "email": lambda text: matches(_EMAIL, text),
    "hostname": lambda text: matches(_HOSTNAME, text),
    "ipv4": partial(reads, ipaddress.IPv4Address),
    "ipv6": partial(reads, ipaddress.IPv6Address),
    "uri": lambda text: matches(_URI, text),
    "uuid": lambda text: UUID.fullmatch(text) is not None,
}
"""The string formats that are validated; others have no effect."""
