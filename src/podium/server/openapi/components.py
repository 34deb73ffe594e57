"""The types of objects as OpenAPI schemas, each by a name of its own, as the API server writes them.

Source: k8s.io/kube-openapi (pkg/builder3), and the marks that kubectl looks for in it: x-kubernetes-patch-strategy,
x-kubernetes-patch-merge-key, x-kubernetes-list-type, x-kubernetes-group-version-kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from podium.api.kinds import SERVED_KINDS, group_of
from podium.api.meta import Raw
from podium.api.schemas import meta
from podium.api.schemas.schema import Field, Fields, Leaf, ListOf, MapOf, Object, Type, fields_of, schema_of
from podium.server.openapi import messages
from podium.server.openapi.descriptions import described

REFERENCE = "#/components/schemas/"
"""What the path of a schema in the same document begins with."""

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_TIME = f"{_META}.Time"

_PLAIN: Mapping[str, Raw] = {
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "float": {"type": "number", "format": "double"},
    "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"},
    "str": {"type": "string"},
}
_NAMED = {"quantity": _QUANTITY, "share": _INT_OR_STRING, "time": _TIME}
_NAMED_SCHEMAS: Mapping[str, Raw] = {
    _QUANTITY: {
        "description": 'An amount such as 2, "500m" or "1Gi".',
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    _INT_OR_STRING: {
        "description": 'A number, or text such as "30%".',
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    _TIME: {"description": "A time such as 2026-01-31T09:30:00Z.", "type": "string", "format": "date-time"},
}
# The fields whose objects keep no more than what a patch names (patchStrategy retainKeys of k8s.io/api).
_RETAIN_KEYS = frozenset(("DeploymentSpec.strategy", "PodSpec.volumes"))


def name_of(type_: str, api_version: str) -> str:
    """What the schema of a type is called in the document of a version."""
    module, _, type_ = type_.rpartition(".")
    if type_ in _meta_types() or module == "meta":
        return f"{_META}.{type_}"
    is_core = module == "core" or (not module and type_ in _core_types())
    group, _, version = ("core/v1" if is_core else api_version).rpartition("/")
    return f"io.k8s.api.{(group or 'core').partition('.')[0]}.{version}.{type_}"


def schemas_of(type_: Object, api_version: str) -> dict[str, Raw]:
    """The schemas of a type and of all that is in it, by name."""
    found: dict[str, Raw] = {}
    waiting = [type_]
    while waiting:
        of = waiting.pop()
        name = name_of(of.name, api_version)
        if name in found:
            continue
        found[name] = _schema(of.name, api_version)
        for field in _fields(of.name).values():
            inner = _innermost(field.type)
            if isinstance(inner, Object):
                waiting.append(inner)
            elif isinstance(inner, Leaf) and inner.type in _NAMED:
                found[_NAMED[inner.type]] = _NAMED_SCHEMAS[_NAMED[inner.type]]
    return found


def _schema(type_: str, api_version: str) -> Raw:
    name = type_.rpartition(".")[2]
    properties = {field: _property(name, field, one, api_version) for field, one in _fields(type_).items()}
    return _told({"type": "object", "properties": properties}, described(name))


def _fields(type_: str) -> Fields:
    return messages.fields_of(type_) if "." in type_ else fields_of(type_)


def _property(type_: str, name: str, field: Field, api_version: str) -> Raw:
    of = f"{type_}.{name}"
    schema = _told(_of_type(field.type, api_version), described(of))
    if field.default is not None:
        schema["default"] = field.default
    return {**schema, **_marks(of, field)}


def _marks(of: str, field: Field) -> Raw:
    """How a field is merged."""
    marks: Raw = {}
    strategies = ["retainKeys"] if of in _RETAIN_KEYS else []
    if isinstance(field.type, ListOf):
        if field.merge_key is None:
            marks["x-kubernetes-list-type"] = "atomic"
        else:
            strategies.insert(0, "merge")
            marks["x-kubernetes-list-type"] = "map" if field.merge_key else "set"
        if field.merge_key:
            marks["x-kubernetes-list-map-keys"] = [field.merge_key]
            marks["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.is_replaced:
        strategies.append("replace")
        marks["x-kubernetes-map-type"] = "atomic"
    if strategies:
        marks["x-kubernetes-patch-strategy"] = ",".join(strategies)
    return marks


def _of_type(type_: Type, api_version: str) -> Raw:
    match type_:
        case Leaf(name):
            return _reference(_NAMED[name]) if name in _NAMED else dict(_PLAIN[name])
        case ListOf(item):
            return {"type": "array", "items": _of_type(item, api_version)}
        case MapOf(value):
            return {"type": "object", "additionalProperties": _of_type(value, api_version)}
        case Object(name):
            return _reference(name_of(name, api_version))


def _reference(name: str) -> Raw:
    # Beside a plain $ref nothing else may stand.
    return {"allOf": [{"$ref": f"{REFERENCE}{name}"}]}


def _told(schema: Raw, description: str) -> Raw:
    return {"description": description, **schema} if description else schema


def _innermost(type_: Type) -> Type:
    while isinstance(type_, ListOf | MapOf):
        type_ = type_.item if isinstance(type_, ListOf) else type_.value
    return type_


@cache
def _meta_types() -> frozenset[str]:
    return frozenset(line for line in meta.FIELDS.splitlines() if line and not line.startswith(" "))


@cache
def _core_types() -> frozenset[str]:
    """The types of core/v1: those that its kinds are made of."""
    kinds = (schema_of(group, kind) for group, kind in SERVED_KINDS if not group)
    return frozenset(type_ for kind in kinds if kind is not None for type_ in _within(kind))


def _within(type_: Object) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[Any] = [type_]
    while waiting:
        of = _innermost(waiting.pop())
        if isinstance(of, Object) and of.name not in seen:
            seen.add(of.name)
            waiting.extend(field.type for field in fields_of(of.name).values())
    yield from sorted(seen)


def group_name(api_version: str) -> str:
    """The group of a version, as names of schemas of custom kinds begin: its parts the other way round."""
    return ".".join(reversed(group_of(api_version).split(".")))
