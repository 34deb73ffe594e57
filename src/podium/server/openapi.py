"""OpenAPI v3 documents: the index, and one for each group and version.

Source: k8s.io/kube-openapi (pkg/handler3, for the index and the names of documents; pkg/builder3, for the schemas), and
the extensions that kubectl reads: x-kubernetes-patch-strategy, x-kubernetes-patch-merge-key, x-kubernetes-list-type,
x-kubernetes-group-version-kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from podium.api.kinds import group_of
from podium.api.meta import Kubernetes, Raw
from podium.api.nested import object_at, objects_at
from podium.api.schemas.schema import (
    META_VERSION,
    Field,
    Leaf,
    ListOf,
    MapOf,
    Object,
    Type,
    api_version_of,
    fields_of,
    is_type,
    other_form_of,
    schema_of,
    type_in,
)
from podium.apirequests.http_mapping import JSON, PATCH_TYPES, PROTOBUF, YAML
from podium.server.discovery import type_of
from podium.server.openapi_descriptions import described
from podium.store.api_resource import APIResource

_ANYTHING: Raw = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_OBJECT_META = Object("ObjectMeta")


def document_path(api_version: str) -> str:
    """Return the path of a version's document within the index: `api/v1`, `apis/apps/v1`."""
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def index(hashes: Mapping[str, str]) -> Raw:
    """Return `/openapi/v3`: the URLs of the versions' documents, with hashes for client caches."""
    paths = {
        document_path(version): {"serverRelativeURL": f"/openapi/v3/{document_path(version)}?hash={hash_}"}
        for version, hash_ in hashes.items()
    }
    return {"paths": paths}


def definition_of(custom: Raw | None, api_version: str) -> Raw | None:
    """Return the structural schema of a CustomResourceDefinition for a version, or None."""
    version = api_version.rpartition("/")[2]
    for served in objects_at(custom, "spec", "versions"):
        if served.get("name") == version:
            return object_at(served, "schema", "openAPIV3Schema") or None
    return None


def document(
    kinds: Iterable[tuple[APIResource, APIResource | None]], api_version: str, definitions: Mapping[str, Raw | None]
) -> Raw:
    """Return the document of a version with its `kinds`; a kind that is not stored has no resource.

    `definitions` are the structural schemas of the version's custom kinds, by kind.
    """
    paths: dict[str, Raw] = {}
    schemas: dict[str, Raw] = {}
    for kind, resource in kinds:
        name, found = _schemas(kind, resource, definitions.get(kind.kind))
        schemas |= found
        schemas[name] = {**schemas[name], "x-kubernetes-group-version-kind": [type_of(kind)]}
        paths |= _paths(kind, name, is_own=_is_own(resource))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": api_version},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def _schemas(kind: APIResource, resource: APIResource | None, definition: Raw | None) -> tuple[str, dict[str, Raw]]:
    """Return the name of a kind's schema, and that schema with all schemas that it references."""
    is_stored = resource is not None and not resource.is_custom and kind.api_version == resource.api_version
    known = (
        (schema_of(kind.group, kind.kind) if is_stored else other_form_of(kind.api_version, kind.kind))
        or type_in(kind.api_version, kind.kind)
        or type_in(META_VERSION, kind.kind)
    )
    if known is not None:
        return name_of(known.name), schemas_of(known)
    name = name_of(kind.kind, kind.api_version)
    if resource is not None and _is_own(resource):
        name = ".".join((*reversed(group_of(kind.api_version).split(".")), kind.version, kind.kind))
        if definition is None and not resource.is_custom:
            definition = _schema_of_struct(resource.type)
    return name, {**schemas_of(_OBJECT_META), name: _with_metadata(definition or _ANYTHING)}


def _is_own(resource: APIResource | None) -> bool:
    """Return whether a kind is custom or Podium's own, and not Kubernetes'."""
    return resource is not None and (
        resource.is_custom or ("." in resource.group and not resource.group.endswith(".k8s.io"))
    )


def _with_metadata(definition: Raw) -> Raw:
    """Return the schema of a kind with the fields that every object has."""
    properties: dict[str, Any] = {
        "apiVersion": {"description": described("*.apiVersion"), "type": "string"},
        "kind": {"description": described("*.kind"), "type": "string"},
        **definition.get("properties", {}),
        "metadata": {"description": described("*.metadata"), **_reference(name_of(_OBJECT_META.name))},
    }
    return {**definition, "type": "object", "properties": properties}


# Keys that msgspec adds and that OpenAPI or kubectl does not need.
_LEFT_OUT = ("title", "default", "additionalProperties", "anyOf", "$ref")


def _schema_of_struct(type_: type[Kubernetes]) -> Raw:
    """Return the schema of a struct with all nested types inlined; the caller adds the metadata."""
    (root,), definitions = msgspec.json.schema_components([type_], ref_template="{name}")
    schema = _plain(root, definitions)
    for name in ("apiVersion", "kind", "metadata"):
        schema["properties"].pop(name, None)
    return schema


def _plain(schema: Raw, definitions: Raw) -> Raw:
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"]], definitions)
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    types = sorted(str(choice.get("type")) for choice in choices)
    if types == ["integer", "string"]:
        return {"x-kubernetes-int-or-string": True}
    if len(choices) == 1:
        return _plain(choices[0], definitions)
    if choices:
        return {"x-kubernetes-preserve-unknown-fields": True}
    plain = {name: value for name, value in schema.items() if name not in _LEFT_OUT and value != []}
    if "description" in plain:
        plain["description"] = " ".join(plain["description"].split()).replace("`", "")
    if "properties" in plain:
        plain["properties"] = {name: _plain(one, definitions) for name, one in plain["properties"].items()}
    if isinstance(plain.get("items"), dict):
        plain["items"] = _plain(plain["items"], definitions)
    if isinstance(plain.pop("prefixItems", None), list):
        plain.pop("items", None)
    return plain


_METHODS = {"get": "get", "list": "get", "create": "post", "update": "put", "patch": "patch"}
_METHODS |= dict.fromkeys(("delete", "deletecollection"), "delete")
_OF_COLLECTIONS = ("create", "deletecollection", "list")
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]


def _paths(kind: APIResource, schema: str, *, is_own: bool) -> dict[str, Raw]:
    """Return the paths of a kind with that schema name, and the operations at each path."""
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    within = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
    collection = f"{within}/{kind.plural}"
    reference = {"schema": {"$ref": f"{REFERENCE}{schema}"}}
    of_collection = [verb for verb in kind.verbs if verb in _OF_COLLECTIONS]
    of_one = [verb for verb in kind.verbs if verb not in _OF_COLLECTIONS]
    paths = {
        collection: _operations(type_of(kind), of_collection, reference, is_own),
        f"{collection}/{{name}}": _operations(type_of(kind), of_one, reference, is_own),
    }
    if kind.namespaced and "list" in kind.verbs:
        paths[f"{root}/{kind.plural}"] = _operations(type_of(kind), ["list"], reference, is_own)
    for found in kind.subresources:
        paths[f"{collection}/{{name}}/{found.name}"] = _operations(type_of(kind, found), found.verbs, {}, is_own)
    return {path: operations for path, operations in paths.items() if operations}


def _operations(type_: Raw, verbs: Iterable[str], schema: Raw, is_own: bool) -> Raw:
    return {_METHODS[verb]: _operation(type_, verb, schema, is_own) for verb in verbs if verb in _METHODS}


def _operation(type_: Raw, verb: str, schema: Raw, is_own: bool) -> Raw:
    operation: Raw = {
        "responses": {"200": {"description": "OK", "content": {JSON: schema if verb != "list" else {}}}},
        "x-kubernetes-action": _METHODS[verb] if verb in ("create", "update") else verb,
        "x-kubernetes-group-version-kind": type_,
    }
    if verb in ("create", "patch", "update"):
        # Strategic merge patch is only for Kubernetes' own kinds.
        patches = sorted(name for name, type_ in PATCH_TYPES.items() if not is_own or type_ != "strategic")
        types = patches if verb == "patch" else (JSON, YAML, PROTOBUF)
        operation["parameters"] = _PARAMETERS
        operation["requestBody"] = {"content": dict.fromkeys(types, schema)}
    return operation


REFERENCE = "#/components/schemas/"
"""The prefix of references to schemas in the same document."""

_APIMACHINERY = "io.k8s.apimachinery.pkg"
_META = f"{_APIMACHINERY}.apis.meta.v1"
_PLAIN: Mapping[str, Raw] = {
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "float": {"type": "number", "format": "double"},
    "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"},
    "str": {"type": "string"},
}
# By leaf type, the name and the content of its schema.
_NAMED: Mapping[str, tuple[str, Raw]] = {
    "quantity": (
        f"{_APIMACHINERY}.api.resource.Quantity",
        {"description": 'An amount such as 2, "500m" or "1Gi".', "oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    "intOrString": (
        f"{_APIMACHINERY}.util.intstr.IntOrString",
        {
            "description": 'A number, or text such as "30%".',
            "format": "int-or-string",
            "oneOf": [{"type": "integer"}, {"type": "string"}],
        },
    ),
    **{
        name.lower(): (
            f"{_META}.{name}",
            {"description": f"A time such as 2026-01-31T09:30:00{fraction}Z.", "type": "string", "format": "date-time"},
        )
        for name, fraction in (("Time", ""), ("MicroTime", ".000000"))
    },
}


def name_of(type_: str, api_version: str = "") -> str:
    """Return the schema name of a type; `api_version` is that of a type that is not in the catalogue."""
    version = api_version_of(type_) if is_type(type_) else api_version
    name = type_.rpartition(".")[2]
    if version == META_VERSION:
        return f"{_META}.{name}"
    group, _, version = version.rpartition("/")
    return f"io.k8s.api.{(group or 'core').partition('.')[0]}.{version}.{name}"


def schemas_of(type_: Object) -> dict[str, Raw]:
    """Return the schemas of a type and of all types within it, by name."""
    found: dict[str, Raw] = {}
    waiting: list[Type] = [type_]
    while waiting:
        match waiting.pop():
            case ListOf(inner) | MapOf(inner):
                waiting.append(inner)
            case Leaf(name) if name in _NAMED:
                found[_NAMED[name][0]] = _NAMED[name][1]
            case Object(name) if name_of(name) not in found:
                found[name_of(name)] = _schema(name)
                waiting.extend(field.type for field in fields_of(name).values())
    return found


def _schema(type_: str) -> Raw:
    name = type_.rpartition(".")[2]
    properties = {field: _property(f"{name}.{field}", one) for field, one in fields_of(type_).items()}
    return _with_description({"type": "object", "properties": properties}, described(name))


def _property(of: str, field: Field) -> Raw:
    schema = _with_description(_of_type(field.type), described(of))
    if field.default is not None:
        schema["default"] = field.default
    return {**schema, **_merge_extensions(field)}


def _merge_extensions(field: Field) -> Raw:
    extensions: Raw = {}
    strategies = [field.strategy] if field.strategy else []
    if isinstance(field.type, ListOf):
        keys = field.list_keys
        extensions["x-kubernetes-list-type"] = "atomic" if keys is None else "map" if keys else "set"
        if keys:
            extensions["x-kubernetes-list-map-keys"] = list(keys)
        if field.merge_key is not None:
            strategies.insert(0, "merge")
        if field.merge_key:
            extensions["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.strategy == "replace":
        extensions["x-kubernetes-map-type"] = "atomic"
    if strategies:
        extensions["x-kubernetes-patch-strategy"] = ",".join(strategies)
    return extensions


def _of_type(type_: Type) -> Raw:
    match type_:
        case Leaf(name):
            return _reference(_NAMED[name][0]) if name in _NAMED else dict(_PLAIN[name])
        case ListOf(item):
            return {"type": "array", "items": _of_type(item)}
        case MapOf(value):
            return {"type": "object", "additionalProperties": _of_type(value)}
        case Object(name):
            return _reference(name_of(name))


def _reference(name: str) -> Raw:
    # A $ref cannot have siblings.
    return {"allOf": [{"$ref": f"{REFERENCE}{name}"}]}


def _with_description(schema: Raw, description: str) -> Raw:
    return {"description": description, **schema} if description else schema
