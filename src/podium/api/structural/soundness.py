"""Validation of structural schemas.

Source: apiextensions-apiserver (pkg/apiserver/schema/validation.go, pkg/apis/apiextensions/validation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from podium.api.errors import shown
from podium.api.meta import MAX_OBJECT_BYTES, Raw, object_at
from podium.api.structural.structural import Rule, TooLargeError, max_size, read_structural, shaped
from podium.api.structural.validation import find_problems, is_pattern
from podium.api.validation.findings import MAX_FINDINGS, Finding, forbidden, invalid, required, unsupported

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_UNTYPED = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
_FORBIDDEN = ("$ref", "$schema", "additionalItems", "definitions", "dependencies", "id", "patternProperties")
_NOT_IN_JUNCTORS = tuple(
    """
    additionalProperties default description nullable title type x-kubernetes-embedded-resource
    x-kubernetes-int-or-string x-kubernetes-list-map-keys x-kubernetes-list-type x-kubernetes-map-type
    x-kubernetes-preserve-unknown-fields x-kubernetes-validations
    """.split()
)
_NUMBERS = ("maximum", "minimum", "multipleOf")
_COUNTS = ("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")
_LIST_TYPES = ("atomic", "map", "set")
_MAP_TYPES = ("atomic", "granular")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_DEEPEST = 64
_SHAPES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("properties", "not", "items"), lambda value: isinstance(value, dict), "must be an object"),
    (
        (*_JUNCTORS, "required", "enum", "x-kubernetes-list-map-keys", "x-kubernetes-validations"),
        lambda value: isinstance(value, list),
        "must be a list",
    ),
    (_NUMBERS, lambda value: isinstance(value, int | float) and not isinstance(value, bool), "must be a number"),
    (_COUNTS, lambda value: type(value) is int, "must be a whole number"),
    (("pattern", "format"), lambda value: isinstance(value, str), "must be text"),
    (("additionalProperties",), lambda value: isinstance(value, dict | bool), "must be a schema, true or false"),
)


def find_schema_problems(schema: Any, path: str) -> list[Finding]:
    """Return the problems of the schema of a kind."""
    if not isinstance(schema, dict):
        return [required(path, "schemas are required")]
    return list(islice(_of_root(schema, path), MAX_FINDINGS))


def _of_root(schema: Raw, path: str) -> Iterator[Finding]:
    if schema.get("type") != "object":
        if schema.get("type"):
            yield invalid(f"{path}.type", schema["type"], "must be object at the root")
        else:
            yield required(f"{path}.type", "must not be empty at the root")
    metadata = schema.get("properties", {}).get("metadata") if isinstance(schema.get("properties"), dict) else None
    inner = metadata.get("properties", {}) if isinstance(metadata, dict) else {}
    if isinstance(inner, dict) and set(inner) - {"name", "generateName"}:
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{path}.properties[metadata]", detail)
    problems = [*islice(_of_node(schema, path, 0), MAX_FINDINGS)]
    yield from problems
    yield from _of_default(schema, path)
    if not problems:
        yield from _of_rules(schema, path)


_MOST_COST = 10_000_000
_MOST_COST_IN_ALL = 100_000_000
_SIMPLER = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


def _of_rules(schema: Raw, path: str) -> Iterator[Finding]:
    """Yield the rules that do not compile, or that may cost too much, at their places and in all."""
    total = 0
    waiting = [(read_structural(schema, is_root=True), path, 1, "")]
    while waiting:
        node, place, count, without_old = waiting.pop()
        for number, rule in enumerate(node.rules):
            cost = 0 if rule.program is None else rule.program.cost * count
            total += cost
            yield from _of_rule(rule, f"{place}.x-kubernetes-validations[{number}]", cost, without_old)
        if node.is_atomic_map or (node.items is not None and node.list_type != "map"):
            # The parts of an object before and after an update do not correspond.
            without_old = without_old or place.removeprefix(".")
        properties = node.properties.items()
        waiting += [(inner, f"{place}.properties[{name}]", count, without_old) for name, inner in properties]
        repeated = count * max_size(node)
        for name, inner in (("additionalProperties", node.values), ("items", node.items)):
            if inner is not None:
                waiting.append((inner, f"{place}.{name}", repeated, without_old))
    if total > _MOST_COST_IN_ALL:
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, f"{what} exceeds {_excess(total, _MOST_COST_IN_ALL)}")


def _of_rule(rule: Rule, path: str, cost: int, without_old: str) -> Iterator[Finding]:
    place = f"{path}.rule"
    for field, text, problem in rule.problems:
        yield invalid(f"{path}.{field}", text, problem)
    if cost > _MOST_COST:
        yield forbidden(place, f"estimated rule cost exceeds {_excess(cost, _MOST_COST)}")
    if rule.uses_old and without_old:
        problem = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {without_old}"
        yield invalid(place, rule.text, problem)


def _excess(cost: int, most: int) -> str:
    factor = cost / most
    times = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"budget by factor of {times} {_SIMPLER}"


def _of_node(schema: Any, path: str, depth: int) -> Iterator[Finding]:
    if not isinstance(schema, dict):
        yield invalid(path, schema, "must be a schema")
        return
    if depth > _DEEPEST:
        yield forbidden(path, f"schemas are at most {_DEEPEST} levels deep")
        return
    if (problem := _shape_problem(schema, path)) is not None:
        yield problem
        return
    yield from _of_type(schema, path, depth)
    yield from _of_keywords(schema, path)
    yield from _of_lists(schema, path)
    for name, inner in schema.get("properties", {}).items():
        yield from _of_node(inner, f"{path}.properties[{name}]", depth + 1)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _of_node(schema["additionalProperties"], f"{path}.additionalProperties", depth + 1)
    if "items" in schema:
        yield from _of_node(schema["items"], f"{path}.items", depth + 1)
    for place, part in _parts(schema, path):
        yield from _of_part(part, schema, place, depth)


def _shape_problem(schema: Raw, path: str) -> Finding | None:
    """Return the problem of the first keyword of a schema with a value of a wrong type."""
    for fields, is_right, words in _SHAPES:
        for field in fields:
            if field in schema and not is_right(schema[field]):
                return invalid(f"{path}.{field}", schema[field], words)
    return None


def _of_type(schema: Raw, path: str, depth: int) -> Iterator[Finding]:
    type_ = schema.get("type")
    if type_ is None or type_ == "":
        if depth and not any(schema.get(field) for field in _UNTYPED):
            what = "specified array items" if path.endswith(".items") else "specified object fields"
            yield required(f"{path}.type", f"must not be empty for {what}")
    elif type_ not in _TYPES:
        yield unsupported(f"{path}.type", type_, _TYPES)
    elif schema.get("x-kubernetes-int-or-string"):
        yield forbidden(f"{path}.type", "must be empty if x-kubernetes-int-or-string is true")
    if schema.get("x-kubernetes-embedded-resource") and type_ != "object":
        yield invalid(f"{path}.type", type_ or "", "must be object if x-kubernetes-embedded-resource is true")
    if type_ == "array" and "items" not in schema:
        yield required(f"{path}.items", "must be specified")


def _of_keywords(schema: Raw, path: str) -> Iterator[Finding]:
    for field in _FORBIDDEN:
        if schema.get(field):
            yield forbidden(f"{path}.{field}", f"{field} is not supported")
    if schema.get("uniqueItems"):
        yield forbidden(
            f"{path}.uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        )
    values = schema.get("additionalProperties")
    if values is False:
        yield forbidden(f"{path}.additionalProperties", "additionalProperties cannot be set to false")
    if values is not None and values is not True and schema.get("properties"):
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    pattern = schema.get("pattern")
    if pattern and not is_pattern(pattern):
        yield invalid(f"{path}.pattern", pattern, "must be a valid regular expression, but isn't: it cannot be read")
    for index, rule in enumerate(schema.get("x-kubernetes-validations", ())):
        place = f"{path}.x-kubernetes-validations[{index}]"
        if not isinstance(rule, dict) or not str(rule.get("rule", "")).strip():
            yield required(f"{place}.rule", "rule is not specified")
        elif rule.get("reason") not in (None, *_REASONS):
            yield unsupported(f"{place}.reason", rule["reason"], _REASONS)


def _of_lists(schema: Raw, path: str) -> Iterator[Finding]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if kind is not None and kind not in _LIST_TYPES:
        yield unsupported(f"{path}.x-kubernetes-list-type", kind, _LIST_TYPES)
    if kind is not None and schema.get("type") != "array":
        yield invalid(f"{path}.type", schema.get("type", ""), "must be array if x-kubernetes-list-type is specified")
    if schema.get("x-kubernetes-map-type") not in (None, *_MAP_TYPES):
        yield unsupported(f"{path}.x-kubernetes-map-type", schema["x-kubernetes-map-type"], _MAP_TYPES)
    if keys and kind != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield invalid(f"{path}.x-kubernetes-list-type", kind or "", detail)
    if kind != "map":
        return
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        yield required(f"{path}.x-kubernetes-list-map-keys", detail)
        return
    items = object_at(schema, "items")
    inner = items.get("properties", {})
    for index, key in enumerate(keys):
        place = f"{path}.x-kubernetes-list-map-keys[{index}]"
        if not isinstance(key, str) or not isinstance(inner, dict) or key not in inner:
            yield invalid(place, key, "entries must all be names of item properties")
        elif "default" not in inner[key] and key not in items.get("required", ()):
            detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be required"
            yield required(f"{path}.items.properties[{key}].default", detail)


def _parts(schema: Raw, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the subschemas of allOf, anyOf, oneOf and not, each with its path."""
    for field in _JUNCTORS:
        yield from ((f"{path}.{field}[{index}]", part) for index, part in enumerate(schema.get(field, ())))
    if "not" in schema:
        yield f"{path}.not", schema["not"]


def _of_part(part: Any, whole: Any, path: str, depth: int) -> Iterator[Finding]:
    """Yield the problems of a subschema, which may only restrict what the enclosing schema specifies."""
    if not isinstance(part, dict) or depth > _DEEPEST:
        yield invalid(path, part, f"must be a schema, at most {_DEEPEST} levels deep")
        return
    if (problem := _shape_problem(part, path)) is not None:
        yield problem
        return
    is_choice = bool(whole.get("x-kubernetes-int-or-string")) if isinstance(whole, dict) else False
    for field in _NOT_IN_JUNCTORS:
        if part.get(field) and not (field == "type" and is_choice):
            yield forbidden(f"{path}.{field}", "must be empty to be structural")
    known = whole.get("properties", {}) if isinstance(whole, dict) else {}
    for name, inner in part.get("properties", {}).items():
        place = f"{path}.properties[{name}]"
        if name not in known:
            yield required(f"{place.replace(path, _base(path), 1)}", f"because it is defined in {place}")
        else:
            yield from _of_part(inner, known[name], place, depth + 1)
    for place, inner in _parts(part, path):
        yield from _of_part(inner, whole, place, depth + 1)


def _base(path: str) -> str:
    """Return the path of the schema that contains a subschema."""
    head, _, last = path.rpartition(".")
    return head if last == "not" or last.partition("[")[0] in _JUNCTORS else path


def _of_default(schema: Raw, path: str) -> Iterator[Finding]:
    """Yield the defaults that violate the schema itself."""
    waiting: list[tuple[Any, str, int]] = [(schema, path, 0)]
    while waiting:
        node, place, depth = waiting.pop()
        if not isinstance(node, dict) or depth > _DEEPEST or _shape_problem(node, place) is not None:
            continue
        if "default" in node and depth == 0:
            yield forbidden(f"{place}.default", "must not be set at the root")
        elif "default" in node and node.get("type") in _TYPES and next(_of_node(node, place, 1), None) is None:
            value = {"value": node["default"]}
            without_rules = {**node, "x-kubernetes-validations": []}
            reading = read_structural({"type": "object", "properties": {"value": without_rules}})
            try:
                filled, gone = shaped(value, reading)
            except TooLargeError:
                yield invalid(f"{place}.default", "", f"exceeds {MAX_OBJECT_BYTES} bytes with the defaults within")
                continue
            if gone:
                yield invalid(f"{place}.default", node["default"], f"must not have unknown fields: {shown(gone[0])}")
            for finding in find_problems(filled, reading):
                yield invalid(f"{place}.default", node["default"], finding.message)
        properties = node.get("properties", {})
        waiting += [(inner, f"{place}.properties[{name}]", depth + 1) for name, inner in properties.items()]
        below = [name for name in ("items", "additionalProperties") if name in node]
        waiting += [(node[name], f"{place}.{name}", depth + 1) for name in below]
