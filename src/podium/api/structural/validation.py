"""Validation of an object by the schema of its kind, with the messages of kube-apiserver.

Source: apiextensions-apiserver (pkg/apiserver/validation, pkg/apiserver/schema/listtype, schema/cel/validation.go) and
kube-openapi (pkg/validation/validate).
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from podium.api.cel.compiler import Variables
from podium.api.cel.values import pattern_of, reads
from podium.api.errors import field_path, shown
from podium.api.meta import Raw
from podium.api.structural.rules import COST_LIMIT
from podium.api.structural.structural import TYPE_FIELDS, Structural, seen
from podium.api.times import parse_duration, parse_time
from podium.api.validation.findings import MAX_FINDINGS, Finding, duplicate, invalid, required, too_long, unsupported

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def find_problems(raw: Raw, node: Structural, old: Raw | None = None) -> list[Finding]:
    """Return the problems of an object, which replaces `old` in an update."""
    without = {name: value for name, value in raw.items() if name not in TYPE_FIELDS}
    found = list(islice(_wrong(without, node, ""), MAX_FINDINGS))
    if found:
        # CEL rules require an object of the right types.
        return found
    before = None if old is None else {**old}
    return list(islice(_broken(raw, node, before, "", Variables({}, COST_LIMIT)), MAX_FINDINGS))


def _wrong(value: Any, node: Structural, path: str) -> Iterator[Finding]:
    if value is None and node.is_nullable:
        return
    if node.is_number_or_text:
        if not _TYPES["integer"](value) and not isinstance(value, str):
            yield _mistyped(path, value, "integer,string")
            return
    elif node.type and not _TYPES[node.type](value):
        yield _mistyped(path, value, node.type)
        return
    yield from _beyond_limits(value, node.said, path)
    if isinstance(value, dict):
        yield from _wrong_fields(value, node, path)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            yield from _wrong(item, node.items, f"{path}[{index}]")
        yield from _repeated(value, node, path)
    yield from _unfit(value, node.said, path)


def _wrong_fields(value: Raw, node: Structural, path: str) -> Iterator[Finding]:
    for name in node.said.get("required", ()):
        if name not in value and (path or name not in TYPE_FIELDS):
            yield required(field_path(path, name))
    if node.is_embedded:
        yield from (required(field_path(path, name)) for name in ("apiVersion", "kind") if not value.get(name))
    for key, inner in value.items():
        of = node.properties.get(key, node.values)
        if of is not None:
            yield from _wrong(inner, of, field_path(path, key))


def _mistyped(path: str, value: Any, wanted: str) -> Finding:
    found = next((name for name, is_of in _TYPES.items() if is_of(value)), "null")
    name = path.removeprefix(".")
    detail = f'{name} in body must be of type {wanted}: "{found}"'
    return Finding(path, "FieldValueTypeInvalid", f'Invalid value: "{found}": {detail}')


def _beyond_limits(value: Any, said: Raw, path: str) -> Iterator[Finding]:
    """Yield violations of a schema's value limits."""
    if said.get("enum") is not None and not any(_same(value, choice) for choice in said["enum"]):
        yield unsupported(path, value, said["enum"])
    if isinstance(value, str):
        yield from _of_text(value, said, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _of_number(value, said, path)
    elif isinstance(value, list):
        yield from _of_size(path, value, "items", said.get("minItems"), said.get("maxItems"))
    elif isinstance(value, dict):
        yield from _of_size(path, value, "properties", said.get("minProperties"), said.get("maxProperties"))


def _of_text(value: str, said: Raw, path: str) -> Iterator[Finding]:
    name = path.removeprefix(".")
    if said.get("maxLength") is not None and len(value) > said["maxLength"]:
        yield too_long(path, said["maxLength"])
    if said.get("minLength") is not None and len(value) < said["minLength"]:
        yield invalid(path, value, f"{name} in body should be at least {said['minLength']} chars long")
    pattern = said.get("pattern")
    if pattern and not matches(pattern, value):
        yield invalid(path, value, f"{name} in body should match '{pattern}'")
    format_ = said.get("format")
    if isinstance(format_, str) and format_ in _FORMATS and not _FORMATS[format_](value):
        yield invalid(path, value, f"{name} in body must be of type {format_}: {shown(value)}")


def _of_number(value: int | float, said: Raw, path: str) -> Iterator[Finding]:
    name = path.removeprefix(".")
    least, most = said.get("minimum"), said.get("maximum")
    if least is not None and (value < least or (said.get("exclusiveMinimum") and value == least)):
        than = "greater than" if said.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid(path, value, f"{name} in body should be {than} {least}")
    if most is not None and (value > most or (said.get("exclusiveMaximum") and value == most)):
        than = "less than" if said.get("exclusiveMaximum") else "less than or equal to"
        yield invalid(path, value, f"{name} in body should be {than} {most}")
    step = said.get("multipleOf")
    if step and not _is_multiple(value, step):
        yield invalid(path, value, f"{name} in body should be a multiple of {step}")
    if said.get("format") in ("int32", "int64") and isinstance(value, int):
        bits = int(said["format"][3:])
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            yield invalid(path, value, f"{name} in body must be of type {said['format']}: {shown(str(value))}")


def _is_multiple(value: int | float, step: int | float) -> bool:
    try:
        return not value % step
    except OverflowError:
        # The integer exceeds the range of doubles, so its remainder is not computed.
        return False


def _of_size(path: str, value: list[Any] | Raw, what: str, least: Any, most: Any) -> Iterator[Finding]:
    name = path.removeprefix(".")
    if least is not None and len(value) < least:
        yield invalid(path, len(value), f"{name} in body should have at least {least} {what}")
    if most is not None and len(value) > most:
        yield Finding(path, "FieldValueTooMany", f"Too many: {len(value)}: must have at most {most} items")


def _repeated(value: list[Any], node: Structural, path: str) -> Iterator[Finding]:
    """Yield duplicate items of a list whose items must be unique."""
    if node.list_type == "atomic":
        return
    known: set[str] = set()
    for index, item in enumerate(value):
        identity = {key: item.get(key) for key in node.list_keys} if isinstance(item, dict) and node.list_keys else item
        written = json.dumps(identity, sort_keys=True)
        if written in known:
            yield duplicate(f"{path}[{index}]", written if isinstance(identity, dict) else identity)
        known.add(written)


def _unfit(value: Any, said: Raw, path: str) -> Iterator[Finding]:
    """Yield violations of a schema's allOf, anyOf, oneOf and not."""
    name = shown(path.removeprefix("."))
    for field, detail in (("allOf", "all the schemas (allOf)"), ("anyOf", "at least one schema (anyOf)")):
        fits = [_fits(value, inner) for inner in said.get(field) or ()]
        if fits and not (all(fits) if field == "allOf" else any(fits)):
            yield invalid(path, value, f"{name} must validate {detail}")
    count = sum(_fits(value, inner) for inner in said.get("oneOf") or ())
    if said.get("oneOf") and count != 1:
        found = "valid" if not count else f"{count} valid alternatives"
        detail = "none valid" if not count else found
        yield invalid(path, value, f"{name} must validate one and only one schema (oneOf). Found {detail}")
    if said.get("not") is not None and _fits(value, said["not"]):
        yield invalid(path, value, f"{name} must not validate the schema (not)")


def _fits(value: Any, said: Raw) -> bool:
    """Return whether a value matches a subschema, which has no types except in its properties."""
    if value is None and said.get("nullable"):
        return True
    type_ = said.get("type")
    if isinstance(type_, str) and type_ in _TYPES and not _TYPES[type_](value):
        return False
    if next(_beyond_limits(value, said, ""), None) or next(_unfit(value, said, ""), None):
        return False
    if isinstance(value, dict):
        if any(name not in value for name in said.get("required", ())):
            return False
        inner = said.get("properties", {})
        return all(_fits(value[name], inner[name]) for name in inner if name in value)
    items = said.get("items")
    return not isinstance(value, list) or not isinstance(items, dict) or all(_fits(item, items) for item in value)


def _broken(value: Any, node: Structural, old: Any, path: str, spent: Variables) -> Iterator[Finding]:
    """Yield the CEL rules that the value breaks; `old` None means that there is no old value."""
    if node.rules:
        now, before = seen(value, node), None if old is None else seen(old, node)
        for rule in node.rules:
            said = rule.broken(now, before, spent)
            if said:
                place = f"{path}{rule.place}"
                what = next((name for name, is_of in _TYPES.items() if is_of(value)), "null")
                yield Finding(place, rule.reason, _message(rule.reason, what, said))
    if isinstance(value, dict):
        for key, inner in value.items():
            of = node.properties.get(key, node.values)
            if of is not None:
                was = old.get(key) if isinstance(old, dict) and not node.is_atomic_map else None
                yield from _broken(inner, of, was, field_path(path, key), spent)
    elif isinstance(value, list) and node.items is not None:
        known = _by_keys(old, node)
        for index, item in enumerate(value):
            was = known.get(_keys_of(item, node)) if known else None
            yield from _broken(item, node.items, was, f"{path}[{index}]", spent)


def _message(reason: str, what: str, said: str) -> str:
    word = {
        "FieldValueDuplicate": f'Duplicate value: "{what}"',
        "FieldValueForbidden": "Forbidden",
        "FieldValueRequired": "Required value",
    }.get(reason, f'Invalid value: "{what}"')
    return f"{word}: {said}"


def _by_keys(old: Any, node: Structural) -> dict[str, Any]:
    """Return the items of the old list by their keys."""
    if node.list_type != "map" or not isinstance(old, list):
        return {}
    return {_keys_of(item, node): item for item in old}


def _keys_of(item: Any, node: Structural) -> str:
    return json.dumps([item.get(key) for key in node.list_keys] if isinstance(item, dict) else None)


def _same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def is_pattern(pattern: str) -> bool:
    """Return whether it is a valid regular expression."""
    return reads(pattern_of, pattern)


def matches(pattern: str, text: str) -> bool:
    """Return whether a part of the text matches; an invalid expression matches nothing."""
    return is_pattern(pattern) and pattern_of(pattern).search(text) is not None


def _readable(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def is_readable(text: str) -> bool:
        try:
            read(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return is_readable


_UUID = r"^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"
_DATE = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$"
_EMAIL = r"^[^@\s]+@[^@\s]+$"
_HOSTNAME = r"^([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*\.?$"
_URI = r"^[a-zA-Z][a-zA-Z0-9+.-]*:\S*$|^/\S*$"
_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "byte": _readable(lambda text: base64.b64decode(text, validate=True)),
    "cidr": _readable(lambda text: ipaddress.ip_network(text, strict=False)),
    "date": lambda text: matches(_DATE, text),
    "date-time": _readable(parse_time),
    "duration": _readable(parse_duration),
    "email": lambda text: matches(_EMAIL, text),
    "hostname": lambda text: matches(_HOSTNAME, text),
    "ipv4": _readable(ipaddress.IPv4Address),
    "ipv6": _readable(ipaddress.IPv6Address),
    "uri": lambda text: matches(_URI, text),
    "uuid": lambda text: matches(_UUID, text),
}
"""The string formats that are validated; others have no effect."""
