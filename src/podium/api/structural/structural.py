"""A parsed structural schema: the specification of one location in an object, and of those below it; its defaults.

Source: apiextensions-apiserver (pkg/apiserver/schema/structural.go, convert.go, pruning, defaulting);
apiserver (pkg/cel/common/values.go, schemas.go) for the conversion to CEL values.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from podium.api.cel.moments import Duration, Timestamp
from podium.api.cel.values import EvaluationError, Value
from podium.api.errors import field_path
from podium.api.meta import MAX_OBJECT_BYTES, Raw
from podium.api.structural.rules import escaped

if TYPE_CHECKING:
    from podium.api.structural.rules import Rule

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

    def below(self) -> Iterator[Structural]:
        """Yield the specifications of the next level."""
        yield from self.properties.values()
        yield from (inner for inner in (self.values, self.items) if inner is not None)


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
    from podium.api.structural.rules import read_rules  # noqa: PLC0415 - few schemas have rules, which need CEL

    return replace(node, rules=read_rules(rules, node, is_root=is_root))


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
    return node.default_bytes + sum(map(_default_bytes, node.below()))


@lru_cache(maxsize=256)
def _repeated_bytes(node: Structural) -> int:
    """Return the size of the defaults in the items of lists and in the values of maps."""
    repeated = sum(_default_bytes(inner) for inner in (node.items, node.values) if inner is not None)
    return repeated + sum(map(_repeated_bytes, node.properties.values()))


def shaped(raw: Raw, node: Structural) -> tuple[Raw, list[str]]:
    """Return an object in its stored form, and the paths of pruned fields, such as `spec.size`.

    Raises TooLargeError for more bytes of defaults than an object can have.
    """
    gone: list[str] = []
    kept = {name: raw[name] for name in TYPE_FIELDS if name in raw}
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

    whole: Raw = filled(pruned, node)
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
        elif node.is_embedded and key in TYPE_FIELDS:
            found[key] = inner
        elif node.values is not None:
            found[key] = inner if node.values.keeps_unknown else _pruned(inner, node.values, place, gone)
        elif node.keeps_unknown:
            found[key] = inner
        else:
            gone.append(place)
    return found


def seen(value: Any, node: Structural) -> Value:
    """Return the CEL value at a location of a schema. Text that does not match its format stays text."""
    if isinstance(value, Mapping):
        if node.values is not None and not node.properties:
            return {key: seen(inner, node.values) for key, inner in value.items()}
        return {escaped(key): seen(inner, node.properties.get(key, ANYTHING)) for key, inner in value.items()}
    if isinstance(value, list):
        items = node.items or ANYTHING
        return tuple([seen(item, items) for item in value])
    try:
        if isinstance(value, str) and node.type == "string" and (format_ := node.schema.get("format")) in _FORMATS:
            return _FORMATS[format_](value)
        return float(value) if node.type == "number" and type(value) is int else value
    except (EvaluationError, OverflowError, ValueError):
        return value


_FORMATS: Mapping[str, Callable[[str], Value]] = {
    "byte": lambda text: base64.b64decode(text, validate=True),
    "date": lambda text: Timestamp.of(f"{text}T00:00:00Z"),
    "date-time": Timestamp.of,
    "duration": Duration.of,
}
