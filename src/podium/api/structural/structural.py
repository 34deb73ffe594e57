"""A parsed structural schema: the specification of one location in an object, and of those below it.

It has the defaults, and the CEL rules (x-kubernetes-validations). In a rule, `self` is the value at the rule's
location, `oldSelf` its value before an update; with `optionalOldSelf` an optional value, so that the rule also applies
to creations. A rule that does not compile has `problems`; definitions with such rules are refused, and those of an
older journal are not enforced.

Source: apiextensions-apiserver (pkg/apiserver/schema/structural.go, convert.go, pruning, defaulting, cel); apiserver
(pkg/cel/common/values.go, schemas.go, pkg/cel/escaping.go) for the conversion to CEL values.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import msgspec

from podium.api.cel.compiler import Compiled, Compiler, CostExceededError, Declaration, Variables
from podium.api.cel.syntax import parse
from podium.api.cel.types import DurationValue, Timestamp
from podium.api.cel.values import DYN, NONE, CompileError, EvaluationError, Optional, Value
from podium.api.errors import field_path
from podium.api.meta import MAX_OBJECT_BYTES, Raw
from podium.api.schemas.schema import fields_of

NOTHING: Any = object()
"""The marker for an absent default; null is a valid default."""

TYPE_FIELDS = ("apiVersion", "kind", "metadata")
"""The fields that every object has, whatever its schema."""


@dataclass(frozen=True, slots=True, eq=False)
class Structural:
    """The specification of one location.

    `type` is that of OpenAPI, "" if there is none. `values` specifies the values of arbitrary keys, None if only
    `properties` are allowed. `default_bytes` is the size of the default as JSON. `schema` is the schema itself, which
    contains the value limits.
    """

    type: str = ""
    properties: Mapping[str, Structural] = field(default_factory=dict)
    values: Structural | None = None
    items: Structural | None = None
    default: Any = NOTHING
    default_bytes: int = 0
    is_nullable: bool = False
    keeps_unknown: bool = False
    is_embedded: bool = False
    is_number_or_text: bool = False
    list_type: str = "atomic"
    list_keys: tuple[str, ...] = ()
    is_atomic_map: bool = False
    rules: tuple[Rule, ...] = ()
    schema: Raw = field(default_factory=dict)


ANYTHING = Structural(keeps_unknown=True, is_nullable=True)


def read_structural(schema: Raw, *, is_root: bool = False) -> Structural:
    """Return the parsed form of a valid structural schema (`podium.api.structural.soundness`), perhaps of a kind."""
    values, items = schema.get("additionalProperties"), schema.get("items")
    node = Structural(
        type=schema.get("type", ""),
        properties={name: read_structural(inner) for name, inner in schema.get("properties", {}).items()},
        values=read_structural(values) if isinstance(values, dict) else ANYTHING if values else None,
        items=read_structural(items) if isinstance(items, dict) else None,
        default=schema.get("default", NOTHING),
        default_bytes=len(msgspec.json.encode(schema["default"])) if "default" in schema else 0,
        is_nullable=bool(schema.get("nullable")),
        keeps_unknown=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        is_embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        is_number_or_text=bool(schema.get("x-kubernetes-int-or-string")),
        list_type=schema.get("x-kubernetes-list-type") or "atomic",
        list_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        is_atomic_map=schema.get("x-kubernetes-map-type") == "atomic",
        schema=schema,
    )
    rules = schema.get("x-kubernetes-validations")
    if not rules:
        return node
    declared = declaration(node, is_root=is_root)
    return replace(node, rules=tuple(_rule(each, declared) for each in rules))


class TooLargeError(ValueError):
    """An error for an object that exceeds `MAX_OBJECT_BYTES` with its defaults."""


# The shortest item of a list that can have defaults, with its comma.
_LEAST_ITEM_BYTES = 3


def unfolded_bytes(node: Structural, size: int) -> int:
    """Return an upper bound for the size of an object of `size` bytes with its defaults."""
    return size + _default_bytes(node) + size // _LEAST_ITEM_BYTES * _repeated_bytes(node)


@lru_cache(maxsize=256)
def _default_bytes(node: Structural) -> int:
    """Return the size of all defaults in a schema."""
    below = (*node.properties.values(), node.values, node.items)
    return node.default_bytes + sum(_default_bytes(inner) for inner in below if inner is not None)


@lru_cache(maxsize=256)
def _repeated_bytes(node: Structural) -> int:
    """Return the size of the defaults in the items of lists and in the values of maps."""
    repeated = sum(_default_bytes(inner) for inner in (node.items, node.values) if inner is not None)
    return repeated + sum(map(_repeated_bytes, node.properties.values()))


def shaped(raw: Raw, node: Structural, *, fills: bool = True) -> tuple[Raw, list[str]]:
    """Return an object in its stored form, and the paths of pruned fields, such as `spec.size`.

    `fills` adds defaults. Raises TooLargeError for more bytes of defaults than an object can have.
    """
    gone: list[str] = []
    kept = {name: raw[name] for name in TYPE_FIELDS if name in raw}
    metadata, known = raw.get("metadata"), fields_of("ObjectMeta").keys()
    if isinstance(metadata, dict) and not metadata.keys() <= known:
        gone += [f"metadata.{name}" for name in metadata if name not in known]
        kept["metadata"] = {name: value for name, value in metadata.items() if name in known}
    pruned = _pruned({name: value for name, value in raw.items() if name not in kept}, node, "", gone)
    left_bytes = MAX_OBJECT_BYTES

    def filled(value: Any, node: Structural) -> Any:
        """Return the value with defaults; nulls that the schema does not allow count as absent."""
        nonlocal left_bytes
        if isinstance(value, list):
            return value if node.items is None else [filled(item, node.items) for item in value]
        if not isinstance(value, dict):
            return value
        found: Raw = {}
        for key, inner in value.items():
            of = node.properties.get(key, node.values)
            if inner is None and of is not None and not of.is_nullable and key in node.properties:
                continue
            found[key] = inner if of is None else filled(inner, of)
        for name, of in node.properties.items():
            if of.default is not NOTHING and name not in found:
                left_bytes -= of.default_bytes
                if left_bytes < 0:
                    raise TooLargeError
                found[name] = filled(of.default, of)
        return found

    whole: Raw = filled(pruned, node) if fills else pruned
    return {**kept, **{name: value for name, value in whole.items() if name not in TYPE_FIELDS}}, gone


def _pruned(value: Any, node: Structural, path: str, gone: list[str]) -> Any:
    if isinstance(value, list):
        if node.items is None:
            return value
        return [_pruned(item, node.items, f"{path}[{index}]", gone) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    found: Raw = {}
    for key, inner in value.items():
        place = field_path(path, key).removeprefix(".")
        if key in node.properties:
            found[key] = _pruned(inner, node.properties[key], place, gone)
        elif (node.keeps_unknown and node.values is None) or (node.is_embedded and key in TYPE_FIELDS):
            found[key] = inner
        elif node.values is not None:
            found[key] = inner if node.values.keeps_unknown else _pruned(inner, node.values, place, gone)
        else:
            gone.append(place)
    return found


def cel_value_at(value: Any, node: Structural) -> Value:
    """Return the CEL value at a location of a schema. Text that does not match its format stays text."""
    if isinstance(value, Mapping):
        if node.values is not None and not node.properties:
            return {key: cel_value_at(inner, node.values) for key, inner in value.items()}
        return {escaped(key): cel_value_at(inner, node.properties.get(key, ANYTHING)) for key, inner in value.items()}
    if isinstance(value, list):
        items = node.items or ANYTHING
        return tuple([cel_value_at(item, items) for item in value])
    try:
        if isinstance(value, str) and node.type == "string" and (format_ := str(node.schema.get("format"))) in _FORMATS:
            return _FORMATS[format_](value)
        return float(value) if node.type == "number" and type(value) is int else value
    except (EvaluationError, OverflowError, ValueError):
        return value


_FORMATS: Mapping[str, Callable[[str], Value]] = {
    "byte": lambda text: base64.b64decode(text, validate=True),
    "date": lambda text: Timestamp.of(f"{text}T00:00:00Z"),
    "date-time": Timestamp.of,
    "duration": DurationValue.of,
}


COST_LIMIT = 1_000_000
"""The cost limit of all rules of one object: upstream's limit for one rule, and a tenth of that for an object."""

_ANY = Declaration(DYN)
# Texts that are times, durations and bytes in expressions.
_FORMATTED = ("byte", "date", "date-time", "duration")
_USES_OLD = re.compile(r"\boldSelf\b")
_RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let"),
        *("loop", "namespace", "null", "package", "return", "true", "var", "void", "while"),
    )
)

_ESCAPED = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_TEXT = 5 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """An expression that must be true, and the message if it is not.

    `place` is the faulty field, as a path relative to the rule's location. A transition rule, which `uses_old`, is
    evaluated only if there is an old value, unless it `takes_optional` ones.
    """

    text: str
    program: Compiled | None
    problems: tuple[tuple[str, str, str], ...]
    message: str
    message_program: Compiled | None
    reason: str
    place: str
    uses_old: bool
    takes_optional: bool = False

    def violation(self, value: Value, old: Value | None, spent: Variables) -> str:
        """Return the message for a value that breaks the rule; "" for a valid one. `spent` accumulates the cost.

        Once it is exhausted, no rule is evaluated.
        """
        lacks_old = old is None and self.uses_old and not self.takes_optional
        if self.program is None or spent.cost > spent.limit or lacks_old:
            return ""
        before: Value = old
        if self.takes_optional:
            before = NONE if old is None else Optional(old)
        scope = Variables({"self": value, "oldSelf": before}, spent.limit - spent.cost)
        try:
            holds = self.program.evaluate(scope)
        except CostExceededError as error:
            why = "no further validation rules will be run due to call cost exceeds limit for rule"
            return f"'{error}': {why}: {self.text}"
        except EvaluationError as error:
            return f"rule evaluation error: {error} evaluating rule: {self.text}"
        finally:
            spent.cost += scope.cost
        return "" if holds is True else self._message(scope)

    def _message(self, scope: Variables) -> str:
        if self.message_program is not None:
            try:
                message = self.message_program.evaluate(scope)
            except EvaluationError:
                message = ""
            if isinstance(message, str) and message.strip() and len(message) <= _MAX_TEXT:
                return message.strip()
        return self.message or f"failed rule: {self.text}"


def _rule(schema: Raw, declared: Declaration) -> Rule:
    text = str(schema.get("rule", "")).strip()
    takes_optional = bool(schema.get("optionalOldSelf"))
    variables = {"self": declared, "oldSelf": Declaration(DYN) if takes_optional else declared}
    program, problem = _compiled(text, variables, "bool", "cel expression")
    message = str(schema.get("messageExpression", "")).strip()
    message_program, message_problem = _compiled(message or "''", variables, "string", "messageExpression")
    found = (("rule", text, problem), ("messageExpression", message, message_problem))
    return Rule(
        text=text,
        program=program,
        problems=tuple(each for each in found if each[2]),
        message=str(schema.get("message", "")).strip(),
        message_program=message_program,
        reason=schema.get("reason") or "FieldValueInvalid",
        place=str(schema.get("fieldPath", "")),
        uses_old=_USES_OLD.search(text) is not None,
        takes_optional=takes_optional,
    )


def _compiled(text: str, variables: Mapping[str, Declaration], type_: str, what: str) -> tuple[Compiled | None, str]:
    """Return the program of an expression of a type, or the reason why there is none."""
    try:
        program = Compiler(text, variables).compile(parse(text))
    except (CompileError, RecursionError) as error:
        return None, f"compilation failed: {error}"
    return (program, "") if program.type in (type_, DYN) else (None, f"{what} must evaluate to a {type_}")


_TYPES = {"boolean": "bool", "integer": "int", "number": "double", "string": "string"}
_MOST_BYTES = 3 * 1024 * 1024
# The least number of bytes of an item of a list, and of an entry of a map.
_ITEM_BYTES, _ENTRY_BYTES = 2, 8


def max_size(node: Structural) -> int:
    """Return the maximum length of a value: as its schema says, or as a request can hold."""
    if node.type == "string":
        return int(node.schema.get("maxLength", _MOST_BYTES))
    if node.type == "array":
        return int(node.schema.get("maxItems", _MOST_BYTES // _ITEM_BYTES))
    return int(node.schema.get("maxProperties", _MOST_BYTES // _ENTRY_BYTES)) if node.values is not None else 1


def declaration(node: Structural, *, is_root: bool = False) -> Declaration:
    """Return what expressions know of a value."""
    size = max_size(node)
    if node.keeps_unknown or node.is_number_or_text or node.schema.get("format") in _FORMATTED:
        return Declaration(DYN, size=size)
    if node.type == "array":
        return Declaration("list", items=None if node.items is None else declaration(node.items), size=size)
    if node.values is not None:
        return Declaration("map", items=declaration(node.values), size=size) if not node.properties else _ANY
    if node.type != "object":
        return Declaration(_TYPES.get(node.type, DYN), size=size)
    fields = {escaped(name): declaration(inner) for name, inner in node.properties.items()}
    if is_root or node.is_embedded:
        named = {"name": Declaration("string"), "generateName": Declaration("string")}
        text = Declaration("string")
        fields = {"apiVersion": text, "kind": text, **fields, "metadata": Declaration("object", named)}
    return Declaration("object", fields)


@lru_cache(maxsize=4_096)
def escaped(name: str) -> str:
    """Return a field name as escaped in expressions."""
    if name in _RESERVED:
        return f"__{name}__"
    written = name
    for letters, word in _ESCAPED:
        written = written.replace(letters, word)
    return written if _NAME.fullmatch(written) else name
