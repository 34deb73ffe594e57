"""A validator for the part of JSON Schema that Podium's schemas use; it lists each mismatch with its path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
KNOWN = {
    *("$schema", "$defs", "$ref", "title", "description", "default", "type", "enum", "const", "properties", "required"),
    *("additionalProperties", "items", "anyOf", "oneOf", "allOf", "if", "then"),
    *("minLength", "minimum", "maximum"),
}


def problems(value: Any, schema: Schema, whole: Schema, path: str = "", *, is_strict: bool = False) -> Iterator[str]:
    """Yield what of a value a schema refuses; if it ``is_strict``, keys that it does not name, too."""
    if unknown := schema.keys() - KNOWN:
        raise AssertionError(f"{path}: words that this check does not know: {sorted(unknown)}")
    if "$ref" in schema:
        target = whole["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        yield from problems(value, target, whole, path, is_strict=is_strict)
    if "type" in schema and not _is_of(value, schema["type"]):
        yield f"{path}: {value!r} is no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"
    yield from _limited(value, schema, path)
    yield from _combined(value, schema, whole, path, is_strict)
    if isinstance(value, dict):
        yield from _object(value, schema, whole, path, is_strict)
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from problems(item, schema["items"], whole, f"{path}[{index}]", is_strict=is_strict)


def _limited(value: Any, schema: Schema, path: str) -> Iterator[str]:
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        yield f"{path}: {value!r} is shorter than {schema['minLength']}"
    if isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path}: {value!r} is out of range"


def _combined(value: Any, schema: Schema, whole: Schema, path: str, is_strict: bool) -> Iterator[str]:
    def reported(part: Schema) -> list[str]:
        return list(problems(value, part, whole, path, is_strict=is_strict))

    if "anyOf" in schema and all(found := [reported(part) for part in schema["anyOf"]]):
        yield from min(found, key=len)
    if "oneOf" in schema and sum(not reported(part) for part in schema["oneOf"]) != 1:
        yield f"{path}: not exactly one of {schema['oneOf']}"
    for part in schema.get("allOf", ()):
        yield from reported(part)
    if "if" in schema and not reported(schema["if"]):
        yield from reported(schema["then"])


def _object(value: dict[str, Any], schema: Schema, whole: Schema, path: str, is_strict: bool) -> Iterator[str]:
    known = schema.get("properties", {})
    rest = schema.get("additionalProperties", not (is_strict and "properties" in schema and schema.get("type")))
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}: {name} is missing"
    for name, inner in value.items():
        if name in known:
            yield from problems(inner, known[name], whole, f"{path}.{name}", is_strict=is_strict)
        elif rest is False:
            yield f"{path}: {name} is not known"
        elif isinstance(rest, dict):
            yield from problems(inner, rest, whole, f"{path}.{name}", is_strict=is_strict)


def _is_of(value: Any, types: str | list[str]) -> bool:
    for name in [types] if isinstance(types, str) else types:
        if isinstance(value, _TYPES[name]) and not (isinstance(value, bool) and name != "boolean"):
            return True
    return False
