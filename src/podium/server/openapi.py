"""OpenAPI documents: of v3 one for each group and version, of v2 one for all.

Source: k8s.io/kube-openapi (pkg/handler3, for the index and the names of documents; pkg/builder3, for the schemas), and
the extensions that kubectl reads: x-kubernetes-patch-strategy, x-kubernetes-patch-merge-key, x-kubernetes-list-type,
x-kubernetes-group-version-kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from podium.api.kinds import group_of
from podium.api.meta import Raw, object_at, objects_at
from podium.api.schemas import schema as catalogue
from podium.apirequests.http_mapping import JSON, METHODS, PATCH_TYPES, PROTOBUF, YAML
from podium.server.discovery import type_of
from podium.store.api_resources import APIResource, Subresource

_ANYTHING: Raw = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_OBJECT_META = catalogue.Object("ObjectMeta")
# Keys that msgspec adds and that OpenAPI or kubectl does not need.
_LEFT_OUT = ("title", "default", "additionalProperties", "anyOf", "$ref")

REFERENCE = "#/components/schemas/"
"""The prefix of references to schemas in the same document."""

_KINDS = "x-kubernetes-group-version-kind"
_NOT_IN_V2 = frozenset(("$ref", "allOf", "anyOf", "not", "nullable", "oneOf"))


def document_path(api_version: str) -> str:
    """Return the path of a version's document within the index: `api/v1`, `apis/apps/v1`."""
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def definition_of(custom: Raw | None, api_version: str) -> Raw | None:
    """Return the structural schema of a CustomResourceDefinition for a version, or None."""
    version = api_version.rpartition("/")[2]
    served = (each for each in objects_at(custom, "spec", "versions") if each.get("name") == version)
    return object_at(next(served, None), "schema", "openAPIV3Schema") or None


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
        schemas[name] = {**schemas[name], _KINDS: [type_of(kind)]}
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
    version, of = kind.api_version, kind.kind
    own = catalogue.schema_of(kind.group, of) if is_stored else catalogue.other_form_of(version, of)
    known = own or catalogue.type_in(version, of) or catalogue.type_in(catalogue.META_VERSION, of)
    if known is not None:
        return name_of(known.name), schemas_of(known)
    name = name_of(kind.kind, kind.api_version)
    if resource is not None and _is_own(resource):
        name = ".".join((*reversed(group_of(kind.api_version).split(".")), kind.version, kind.kind))
        if name.startswith(("io.k8s.api.", *_ELSEWHERE.values())):
            name = f"{name}_v2"
        if definition is None and not resource.is_custom:
            # The schema of the struct with all nested types inlined.
            (root,), components = msgspec.json.schema_components([resource.type], ref_template="{name}")
            definition = _plain(root, components)
            for field in ("apiVersion", "kind", "metadata"):
                definition["properties"].pop(field, None)
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


_METHODS = {str(verb): method.lower() for verb, method in METHODS.items() if verb != "watch"}
_OF_COLLECTIONS = ("create", "deletecollection", "list")
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]
_LIST_PARAMETERS = [
    {"name": name, "in": "query", "description": text, "schema": {"type": type_, "uniqueItems": True}}
    for name, type_, text in (
        ("labelSelector", "string", "Selects the list of returned objects by their labels."),
        ("fieldSelector", "string", "Selects the list of returned objects by their fields."),
        ("limit", "integer", "The most objects in one response."),
        ("watch", "boolean", "Watch for changes to the described resources, from the version on."),
    )
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
        collection: _operations(kind, of_collection, reference, is_own),
        f"{collection}/{{name}}": _operations(kind, of_one, reference, is_own),
    }
    if kind.namespaced and "list" in kind.verbs:
        paths[f"{root}/{kind.plural}"] = _operations(kind, ["list"], reference, is_own)
    for found in kind.subresources:
        paths[f"{collection}/{{name}}/{found.name}"] = _operations(kind, found.verbs, {}, is_own, found)
    return {path: operations for path, operations in paths.items() if operations}


def _operations(
    kind: APIResource, verbs: Iterable[str], schema: Raw, is_own: bool, part: Subresource | None = None
) -> Raw:
    """Return the operations at a path of a kind or of its subresource, by method."""
    operations: dict[str, Raw] = {}
    for verb in filter(_METHODS.__contains__, verbs):
        operation: Raw = {
            "responses": {"200": {"description": "OK", "content": {JSON: schema if verb != "list" else {}}}},
            "x-kubernetes-action": _METHODS[verb] if verb in ("create", "update") else verb,
            _KINDS: type_of(kind, part),
        }
        if verb in ("create", "patch", "update"):
            # Strategic merge patch is only for Kubernetes' own kinds.
            patches = sorted(name for name, patch in PATCH_TYPES.items() if not is_own or patch != "strategic")
            types = patches if verb == "patch" else (JSON, YAML, PROTOBUF)
            operation["parameters"] = _PARAMETERS
            operation["requestBody"] = {"content": dict.fromkeys(types, schema)}
        elif verb == "list":
            operation["parameters"] = _LIST_PARAMETERS
            operation["responses"]["200"]["description"] = f"List of {kind.plural}"
        operations[_METHODS[verb]] = operation
    return operations


def document_of_v2(documents: Iterable[Raw]) -> Raw:
    """Return the document of OpenAPI v2 with the paths and schemas of documents of v3."""
    paths: dict[str, Raw] = {}
    definitions: dict[str, Raw] = {}
    for found in documents:
        for path, operations in found["paths"].items():
            paths[path] = {method: _operation_of_v2(operation) for method, operation in operations.items()}
        for name, schema in found["components"]["schemas"].items():
            # kubectl takes every field of a kind without properties.
            has_any = schema.get("x-kubernetes-preserve-unknown-fields") and _KINDS in schema
            definitions[name] = {"type": "object", _KINDS: schema[_KINDS]} if has_any else _of_v2(schema)
    # Amounts and numbers or text have no type in v3.
    definitions |= {name: {"type": "string", **_of_v2(schema)} for name, schema in _NAMED.values()}
    head = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": "2.0"}}
    return {**head, "paths": dict(sorted(paths.items())), "definitions": dict(sorted(definitions.items()))}


def _operation_of_v2(operation: Raw) -> Raw:
    kept = {name: value for name, value in operation.items() if name.startswith("x-")}
    parameters = [
        {**{name: value for name, value in one.items() if name != "schema"}, **one["schema"]}
        for one in operation.get("parameters", ())
    ]
    content = operation.get("requestBody", {}).get("content", {})
    if content:
        schema = _of_v2(next(iter(content.values())).get("schema", {}))
        parameters.append({"name": "body", "in": "body", "required": True, "schema": schema})
        kept["consumes"] = list(content)
    answer = operation["responses"]["200"]
    schemas = {name: _of_v2(schema) for name, schema in answer["content"][JSON].items()}
    responses = {"200": {"description": answer["description"], **schemas}}
    return {**kept, "parameters": parameters, "produces": [JSON], "responses": responses}


def _of_v2(schema: Raw) -> Raw:
    """Return a schema without what v2 or its clients do not know.

    Source: apiextensions-apiserver, pkg/controller/openapi/v2/conversion.go.
    """
    found = {name: value for name, value in schema.items() if name not in _NOT_IN_V2}
    for part in (schema, *schema.get("allOf", ())):
        if "$ref" in part:
            found["$ref"] = part["$ref"].replace(REFERENCE, "#/definitions/")
    is_untyped = bool(schema.get("nullable") or schema.get("x-kubernetes-preserve-unknown-fields"))
    if is_untyped:
        found = {name: value for name, value in found.items() if name not in ("items", "properties")}
    if is_untyped or (found.get("type") == "array" and "items" not in found):
        found.pop("type", None)
    if "properties" in found:
        found["properties"] = {name: _of_v2(one) for name, one in schema["properties"].items()}
        nullable = {name for name, one in schema["properties"].items() if one.get("nullable")}
        if not nullable.isdisjoint(found.get("required", ())):
            found["required"] = [name for name in found["required"] if name not in nullable]
    for name in ("additionalProperties", "items"):
        if isinstance(found.get(name), dict):
            found[name] = _of_v2(found[name])
    return found


_APIMACHINERY = "io.k8s.apimachinery.pkg"
_META = f"{_APIMACHINERY}.apis.meta.v1"
_ELSEWHERE = {
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis",
}
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
    version = catalogue.api_version_of(type_) if catalogue.is_type(type_) else api_version
    name = type_.rpartition(".")[2]
    if version == catalogue.META_VERSION:
        return f"{_META}.{name}"
    group, _, version = version.rpartition("/")
    return f"{_ELSEWHERE.get(group, 'io.k8s.api')}.{(group or 'core').partition('.')[0]}.{version}.{name}"


def schemas_of(type_: catalogue.Object) -> dict[str, Raw]:
    """Return the schemas of a type and of all types within it, by name."""
    found: dict[str, Raw] = {}
    waiting: list[catalogue.Type] = [type_]
    while waiting:
        match waiting.pop():
            case catalogue.ListOf(inner) | catalogue.MapOf(inner):
                waiting.append(inner)
            case catalogue.Leaf(name) if name in _NAMED:
                found[_NAMED[name][0]] = _NAMED[name][1]
            case catalogue.Object(name) if name_of(name) not in found:
                found[name_of(name)] = _schema(name)
                waiting.extend(field.type for field in catalogue.fields_of(name).values())
    return found


def _schema(type_: str) -> Raw:
    name = type_.rpartition(".")[2]
    properties = {field: _property(f"{name}.{field}", one) for field, one in catalogue.fields_of(type_).items()}
    fields = {"properties": properties} if properties else {}
    return _with_description({"type": "object", **fields}, described(name))


def _property(of: str, field: catalogue.Field) -> Raw:
    """Return the schema of a field, with the extensions that say how it is merged."""
    schema = _with_description(_of_type(field.type), described(of))
    if field.default is not None:
        schema["default"] = field.default
    strategies = [field.strategy] if field.strategy else []
    if isinstance(field.type, catalogue.ListOf):
        keys = field.list_keys
        schema["x-kubernetes-list-type"] = "atomic" if keys is None else "map" if keys else "set"
        if keys:
            schema["x-kubernetes-list-map-keys"] = list(keys)
        if field.merge_key is not None:
            strategies.insert(0, "merge")
        if field.merge_key:
            schema["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.strategy == "replace":
        schema["x-kubernetes-map-type"] = "atomic"
    if strategies:
        schema["x-kubernetes-patch-strategy"] = ",".join(strategies)
    return schema


def _of_type(type_: catalogue.Type) -> Raw:
    match type_:
        case catalogue.Leaf(name):
            return _reference(_NAMED[name][0]) if name in _NAMED else dict(_PLAIN[name])
        case catalogue.ListOf(item):
            return {"type": "array", "items": _of_type(item)}
        case catalogue.MapOf(value):
            return {"type": "object", "additionalProperties": _of_type(value)}
        case catalogue.Object(name):
            return _reference(name_of(name))


def _reference(name: str) -> Raw:
    # A $ref cannot have siblings.
    return {"allOf": [{"$ref": f"{REFERENCE}{name}"}]}


def _with_description(schema: Raw, description: str) -> Raw:
    return {"description": description, **schema} if description else schema


@cache
def descriptions() -> Mapping[str, str]:
    """Return the descriptions in `kubectl explain`: short texts for the most important kinds and fields.

    By a type, or a field of a type, in which `*` is any type, as in the file.
    """
    text = resources.files("podium.server").joinpath("field_descriptions.txt").read_text(encoding="utf-8")
    return {of: description for of, _, description in (line.partition(" = ") for line in text.splitlines())}


def described(of: str) -> str:
    """Return the description of a type or field (`PodSpec.nodeName`); "" if there is none."""
    found = descriptions()
    return found.get(of) or found.get(f"*.{of.rpartition('.')[2]}" if "." in of else "", "")
